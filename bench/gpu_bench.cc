// Measures products of a CUDA device in the host's order of sums beside the rate at which it reads its
// memory; checks the bits of each. --only FORMAT, --tokens 1,8, --part products|mlps and --most-rows N
// measure less; --math fast the products of that mode, of which it checks the distance. --room MIB: what the
// kernels have for words of packed matrices; else 12, gate and up of one of the experts; 0: none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "device/space.h"
#include "kernels/gpu/cuda/cuda_bed.h"
#include "kernels/ops/mlp.h"
#include "kernels/products/blocks/block_data.h"
#include "kernels/products/input_form.h"
#include "kernels/products/matrix_bytes.h"
#include "kernels/products/products.h"
#include "measure.h"
#include "report.h"

namespace {

using namespace sluice;
using codec::MatrixFormat;
using codec::MatrixRef;
using kernels::DeviceMath;
using kernels::Floats;
using kernels::gpu::CudaBed;

constexpr int kRounds = 7;

// A matrix in this process's memory.
class HostMatrix {
 public:
  HostMatrix(std::mt19937_64& random, const MatrixFormat& format, std::size_t rows, std::size_t columns) {
    ref_.format = &format;
    ref_.shape = {rows, columns};
    if (&format == &codec::kFormatPacked) {
      make_packed(random);
    } else if (format.words) {
      planes_.push_back(format.words == DType::kF32 ? numbers(random, ref_.shape.elements())
                                                    : half_words(random, ref_.shape.elements()));
    } else {
      const auto blocks = std::ranges::find(kernels::all_blocks(), &format,
                                            [](const kernels::Blocks& each) { return &each.format; });
      for (std::size_t plane = 0; plane < format.plane_count(); ++plane) {
        planes_.emplace_back(format.plane_bytes(ref_.shape, plane));
        kernels::fill_blocks(*blocks, plane, kernels::BlockScales::kAlike, random, planes_.back());
      }
    }
    for (std::size_t plane = 0; plane < planes_.size(); ++plane)
      ref_.planes[plane] = device::host_space().address(planes_[plane].data());
    ref_.chunks = chunks_;
  }
  const MatrixRef& ref() const { return ref_; }
  // A copy on the device.
  MatrixRef put(CudaBed& bed) const {
    MatrixRef there = ref_;
    for (std::size_t plane = 0; plane < planes_.size(); ++plane)
      there.planes[plane] = bed.put(planes_[plane]);
    return there;
  }

 private:
  // Weights as a model has them: normal, small. Few different ones, so that large matrices are made soon.
  static std::vector<std::byte> half_words(std::mt19937_64& random, std::size_t count) {
    std::normal_distribution<float> normal(0, .02f);
    std::vector<std::uint16_t> some(std::min<std::size_t>(count, 1 << 20));
    for (std::uint16_t& word : some) {
      const float number = normal(random);
      std::uint32_t bits;
      std::memcpy(&bits, &number, sizeof(bits));
      word = static_cast<std::uint16_t>(bits >> 16);
    }
    std::vector<std::byte> bytes(2 * count);
    for (std::size_t at = 0; at < count; at += some.size())
      std::memcpy(&bytes[2 * at], some.data(), 2 * std::min(some.size(), count - at));
    return bytes;
  }
  static std::vector<std::byte> numbers(std::mt19937_64& random, std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<std::byte> bytes(4 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const float number = normal(random);
      std::memcpy(&bytes[4 * i], &number, 4);
    }
    return bytes;
  }
  void make_packed(std::mt19937_64& random) {
    const codec::TileShape tiles{ref_.shape.rows, ref_.shape.columns};
    const std::vector<std::byte> words = half_words(random, ref_.shape.elements());
    std::vector<std::byte> exponents(tiles.places());
    planes_.resize(2);
    planes_[0].resize(tiles.places());
    codec::split_tiles(words, tiles, exponents, planes_[0]);
    constexpr std::uint64_t kGroups = 64;  // groups of a chunk
    for (std::uint64_t group = 0; group < tiles.groups(); group += kGroups) {
      const std::uint64_t first = group * tiles.group_places(),
                          count = std::min(kGroups, tiles.groups() - group) * tiles.group_places();
      const std::vector<std::byte> coded = codec::encode_native(std::span(exponents).subspan(first, count),
                                                                codec::tile_rows(tiles, first, count).shape);
      chunks_.push_back({planes_[1].size(), coded.size(), first, count, 0, true});
      planes_[1].insert(planes_[1].end(), coded.begin(), coded.end());
    }
  }

  MatrixRef ref_;
  std::vector<std::vector<std::byte>> planes_;
  std::vector<codec::PlaneChunk> chunks_;
};

std::vector<float> normal_floats(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

Floats put(CudaBed& bed, const std::vector<float>& numbers) {
  return {bed.put(std::as_bytes(std::span(numbers)))};
}
Floats room(CudaBed& bed, std::size_t count) { return {bed.room(count * sizeof(float))}; }

// The same bits; of fast math, numbers as near as products of rounded numbers are.
bool same(CudaBed& bed, Floats found, const std::vector<float>& expected, DeviceMath math) {
  std::vector<float> numbers(expected.size());
  bed.get(found.at, std::as_writable_bytes(std::span(numbers)));
  if (math == DeviceMath::kSame)
    return std::memcmp(numbers.data(), expected.data(), numbers.size() * sizeof(float)) == 0;
  double error = 0, size = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    error += std::pow(double{numbers[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return error <= 1e-4 * size;
}

// What is measured.
struct Wanted {
  std::string only;           // a format; empty: each
  std::string tokens;         // for one product, "1,8"; empty: all numbers of them
  std::string part;           // "products", "mlps"; empty: both
  std::size_t most_rows = 0;  // 0: any
  DeviceMath math = DeviceMath::kSame;

  bool has(const MatrixFormat& format) const { return only.empty() || only == format.name; }
  bool has(std::size_t number) const {
    return tokens.empty() || ("," + tokens + ",").find("," + std::to_string(number) + ",") != tokens.npos;
  }
};

class Bench {
 public:
  Bench(CudaBed& bed, bench::Report& report, const Wanted& wanted)
      : bed_(bed),
        report_(report),
        wanted_(wanted),
        pool_(std::max(1u, std::thread::hardware_concurrency())) {
    context_.pool = &pool_;
    context_.isa = best_isa();
  }

  void read_rate() {
    const Bytes bytes = 40 * bed_.cache_bytes();
    rate_ = bed_.read_rate(bed_.room(bytes), bytes);
    bed_.clear();
    fmt::print("device reads {:.0f} GB/s\n\n", 1e-9 * rate_);
    report_.add({.name = "read", .bytes = rate_, .seconds = {1.0}});
  }

  void products() {
    fmt::print("{:12}{:>15}{:>8}{:>11}{:>9}{:>9}{:>10}  bits\n", "format", "matrix", "tokens", "us", "GB/s",
               "of read", "GFLOP/s");
    for (const MatrixFormat* const format : kFormats)
      for (const auto& [rows, columns] : kShapes)
        if (wanted_.has(*format) && (wanted_.most_rows == 0 || rows <= wanted_.most_rows))
          product(*format, rows, columns);
    fmt::print("\n");
  }

  void mlps() {
    fmt::print("{:12}{:>8}{:>8}{:>11}{:>9}{:>9}{:>10}  bits   (2048 -> 1408 -> 2048)\n", "format", "experts",
               "tokens", "us", "GB/s", "of read", "GFLOP/s");
    for (const MatrixFormat* const format : kFormats) {
      for (const std::size_t experts : {4, 8})
        for (const std::size_t tokens : {1, 8, 16, 32, 64, 256})
          if (wanted_.has(*format) && wanted_.has(tokens)) mlp(*format, experts, tokens);
      bed_.clear();
    }
  }
  bool all_same() const { return all_same_; }

 private:
  struct Shape {
    std::size_t rows, columns;
  };
  static constexpr std::array<const MatrixFormat*, 7> kFormats = {
      &codec::kFormatBf16, &codec::kFormatPacked, &codec::kFormatQ80,      &codec::kFormatQ4K,
      &codec::kFormatQ6K,  &codec::kFormatMxfp4,  &codec::kFormatMxfp4Pair};
  static constexpr Shape kShapes[] = {{1408, 2048}, {2048, 1408}, {768, 2048}, {151936, 2048}};

  // Copies of an operand that are more than the device's cache holds together.
  std::size_t copies_of(Bytes bytes) const {
    return std::max<std::size_t>(2, 3 * bed_.cache_bytes() / bytes + 1);
  }

  void print(std::string_view name, std::string_view what, std::size_t tokens, double seconds, double bytes,
             double flops, bool good) {
    all_same_ &= good;
    fmt::print("{:12}{:>15}{:>8}{:>11.2f}{:>9.0f}{:>9.2f}{:>10.0f}  {}\n", name, what, tokens, 1e6 * seconds,
               1e-9 * bytes / seconds, bytes / seconds / rate_, 1e-9 * flops / seconds,
               !good                               ? "DIFFERENT"
               : wanted_.math == DeviceMath::kSame ? "same"
                                                   : "near");
    std::fflush(stdout);
    report_.add({.name = fmt::format("{} {} {}", name, what, tokens),
                 .bytes = bytes,
                 .flops = flops,
                 .seconds = {seconds}});
  }

  void product(const MatrixFormat& format, std::size_t rows, std::size_t wanted) {
    const std::size_t block = format.block.columns == 0 ? 1 : format.block.columns;
    const std::size_t columns = format.ragged ? wanted : wanted / block * block;
    const HostMatrix matrix(random_, format, rows, columns);
    const Bytes bytes = kernels::matrix_bytes(matrix.ref());
    std::vector<MatrixRef> copies;
    for (std::size_t i = 0; i < copies_of(bytes); ++i) copies.push_back(matrix.put(bed_));
    const std::size_t floats = kernels::activation_floats(matrix.ref());
    for (const std::size_t tokens : {1, 8, 16, 64, 512}) {
      if (!wanted_.has(tokens)) continue;
      if (rows > 100'000 && tokens > 8) continue;  // no prompt has so many rows of logits
      const std::vector<float> x = normal_floats(random_, tokens * columns);
      std::vector<float> arranged(tokens * floats), expected(tokens * rows);
      kernels::arrange_for(context_, matrix.ref(), x.data(), tokens, columns, arranged.data());
      kernels::matmul(context_, arranged.data(), tokens, matrix.ref(), {}, expected.data(), rows);
      const Floats there = put(bed_, arranged), y = room(bed_, tokens * rows);
      const double seconds =
          bed_.seconds(kRounds, [&](kernels::UnitKernels& unit, const device::Access& access) {
            for (const MatrixRef& copy : copies)
              unit.run(access, kernels::op::Matmul{
                                   .x = there, .tokens = tokens, .weight = &copy, .y = y, .y_stride = rows});
          });
      print(format.name, fmt::format("{} x {}", rows, columns), tokens,
            seconds / static_cast<double>(copies.size()), static_cast<double>(bytes),
            2.0 * static_cast<double>(tokens * rows * columns), same(bed_, y, expected, wanted_.math));
    }
    bed_.clear();
  }

  // Several experts of one layer, each with so many tokens.
  void mlp(const MatrixFormat& format, std::size_t experts, std::size_t tokens) {
    const std::size_t block = format.block.columns == 0 || format.ragged ? 1 : format.block.columns;
    const std::size_t d = 2048, width = 1408 / block * block;
    bed_.clear();
    const HostMatrix gate(random_, format, width, d), up(random_, format, width, d),
        down(random_, format, d, width);
    const Bytes bytes = experts * (kernels::matrix_bytes(gate.ref()) + kernels::matrix_bytes(up.ref()) +
                                   kernels::matrix_bytes(down.ref()));
    const std::size_t floats = kernels::activation_floats(up.ref()),
                      inner = kernels::activation_floats(down.ref());
    const std::vector<float> x = normal_floats(random_, tokens * d);
    std::vector<float> arranged(tokens * floats), expected(tokens * d), gate_room(tokens * width),
        up_room(tokens * width), inner_room(tokens * inner);
    kernels::arrange_for(context_, up.ref(), x.data(), tokens, d, arranged.data());
    kernels::Mlp here{.gate = gate.ref(), .up = up.ref(), .down = down.ref(), .out = expected.data()};
    here.inputs.fill(arranged.data());
    kernels::mlp(context_, here, tokens, {gate_room.data(), up_room.data(), inner_room.data()});
    const Floats there = put(bed_, arranged);
    std::vector<std::vector<kernels::op::Mlp>> layers(copies_of(bytes));
    for (std::vector<kernels::op::Mlp>& layer : layers)
      for (std::size_t expert = 0; expert < experts; ++expert) {
        kernels::op::Mlp one;
        one.gate = gate.put(bed_);
        one.up = up.put(bed_);
        one.down = down.put(bed_);
        one.tokens = tokens;
        one.inputs.fill(there);
        one.gate_room = room(bed_, tokens * width);
        one.up_room = room(bed_, tokens * width);
        one.inner = room(bed_, tokens * inner);
        one.out = room(bed_, tokens * d);
        layer.push_back(one);
      }
    const double seconds =
        bed_.seconds(kRounds, [&](kernels::UnitKernels& unit, const device::Access& access) {
          for (const std::vector<kernels::op::Mlp>& layer : layers)
            unit.run(access, std::span<const kernels::op::Mlp>(layer));
        });
    bool good = true;
    for (const kernels::op::Mlp& one : layers.back()) good &= same(bed_, one.out, expected, wanted_.math);
    print(format.name, std::to_string(experts), tokens, seconds / static_cast<double>(layers.size()),
          static_cast<double>(bytes), 6.0 * static_cast<double>(experts * tokens * d * width), good);
  }

  CudaBed& bed_;
  bench::Report& report_;
  const Wanted wanted_;
  ThreadPool pool_;
  kernels::Context context_;
  std::mt19937_64 random_{1};
  double rate_ = 1;
  bool all_same_ = true;
};

}  // namespace

int main(int argc, char** argv) try {
  bench::check_options(argc, argv, {"json", "only", "tokens", "part", "most-rows", "room", "math"});
  const auto value = [&](std::string_view name) -> std::string {
    for (int i = 1; i + 1 < argc; i += 2)
      if (std::string_view(argv[i]).substr(2) == name) return argv[i + 1];
    return {};
  };
  const std::string most_rows = value("most-rows");
  const Wanted wanted{value("only"), value("tokens"), value("part"),
                      most_rows.empty() ? 0 : std::stoul(most_rows),
                      value("math") == "fast" ? DeviceMath::kFast : DeviceMath::kSame};
  const Bytes room = bench::whole_option(argc, argv, "room", 12, 0) * kMiB;
  bench::Report report("gpu", argc, argv);
  std::string why;
  const std::unique_ptr<CudaBed> bed =
      CudaBed::make(Bytes{8} << 30, {.room = room, .math = wanted.math}, why);
  if (bed == nullptr) {
    fmt::print("no CUDA device, nothing was measured: {}\n", why);
    report.write();
    return 0;
  }
  fmt::print("{}\n", bed->name());
  Bench bench(*bed, report, wanted);
  bench.read_rate();
  if (wanted.part != "mlps") bench.products();
  if (wanted.part != "products") bench.mlps();
  report.write();
  if (!bench.all_same()) {
    fmt::print("some products have other bits than the host's\n");
    return 1;
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_gpu: {}\n", error.what());
  return 1;
}
