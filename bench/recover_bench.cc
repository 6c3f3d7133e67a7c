// Measures the kernel that makes words of packed matrices on a CUDA device, beside a copy on the device of as
// many bytes, in alternation; checks the words.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "kernels/gpu/cuda/cuda_bed.h"
#include "measure.h"
#include "report.h"

namespace {

using namespace sluice;
using kernels::gpu::CudaBed;

constexpr int kRounds = 15;

// A packed matrix of normal numbers, with exponents as they are or coded.
struct Packed {
  std::vector<std::byte> words, sign_mantissas, exponents;
  std::vector<codec::PlaneChunk> chunks;
  codec::MatrixShape shape;
  Bytes bytes() const { return sign_mantissas.size() + exponents.size(); }
};

// Few different numbers, so that large matrices are made soon.
std::vector<std::byte> some_words(std::size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, .02f);
  std::vector<std::uint16_t> some(std::size_t{1} << 20);
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

Packed pack(codec::MatrixShape shape, bool coded) {
  Packed packed{.words = some_words(shape.elements()), .shape = shape};
  const codec::TileShape tiles{shape.rows, shape.columns};
  std::vector<std::byte> exponents(tiles.places());
  packed.sign_mantissas.resize(tiles.places());
  codec::split_tiles(packed.words, tiles, exponents, packed.sign_mantissas);
  constexpr std::uint64_t kGroups = 64;  // groups of a chunk
  for (std::uint64_t group = 0; group < tiles.groups(); group += kGroups) {
    const std::uint64_t first = group * tiles.group_places(),
                        count = std::min(kGroups, tiles.groups() - group) * tiles.group_places();
    const std::span<const std::byte> raw = std::span<const std::byte>(exponents).subspan(first, count);
    std::vector<std::byte> stored(raw.begin(), raw.end());
    if (coded) stored = codec::encode_native(raw, codec::tile_rows(tiles, first, count).shape);
    bench::require(!stored.empty(), "normal numbers have exponents that can be coded");
    packed.chunks.push_back({packed.exponents.size(), stored.size(), first, count, 0, coded});
    packed.exponents.insert(packed.exponents.end(), stored.begin(), stored.end());
  }
  return packed;
}

// Returns whether the words are right.
bool measure(CudaBed& bed, bench::Report& report, codec::MatrixShape shape, bool coded) {
  const Packed packed = pack(shape, coded);
  const Bytes out = packed.words.size(), moved = packed.bytes() + out;
  const codec::MatrixRef matrix{&codec::kFormatPacked,
                                shape,
                                {bed.put(packed.sign_mantissas), bed.put(packed.exponents)},
                                packed.chunks};
  // A copy reads a byte for each that it writes.
  const device::Address words = bed.room(out), from = bed.room(moved / 2), to = bed.room(moved / 2);
  std::vector<double> recover, copy;
  for (int round = 0; round < kRounds; ++round) {
    recover.push_back(bed.seconds(
        1, [&](kernels::UnitKernels&, const device::Access& access) { bed.recover(access, matrix, words); }));
    copy.push_back(bed.seconds(1, [&](kernels::UnitKernels&, const device::Access& access) {
      bed.copy(access, from, to, moved / 2);
    }));
  }
  std::vector<std::byte> found(out);
  bed.get(words, found);
  bed.clear();
  const bool right = found == packed.words;
  const std::string what =
      fmt::format("{} x {}, exponents {}", shape.rows, shape.columns, coded ? "coded" : "raw");
  const bench::Workload rows[] = {{"words of " + what, {}, recover}, {"copy as of " + what, {}, copy}};
  for (const bench::Workload& row : rows) {
    report.add({.name = row.name,
                .bytes = static_cast<double>(moved),
                .seconds = row.seconds,
                .limit = rows[1].name,
                .shares = bench::shares_of(1, row.seconds, 1, copy)});
    fmt::print("{:<48} {:7.1f} GB/s  {}\n", row.name,
               1e-9 * static_cast<double>(moved) / bench::quantile(row.seconds, 0.5), bench::times(row));
  }
  fmt::print("{} bytes moved; share of the copy's rate {:.2f}; words {}\n\n", moved,
             bench::quantile(copy, 0.5) / bench::quantile(recover, 0.5), right ? "right" : "WRONG");
  return right;
}

}  // namespace

int main(int argc, char** argv) try {
  bench::check_options(argc, argv, {"json"});
  bench::Report report("recover", argc, argv);
  std::string why;
  const std::unique_ptr<CudaBed> bed = CudaBed::make(Bytes{4} << 30, {}, why);
  if (bed == nullptr) {
    fmt::print("no CUDA device, nothing was measured: {}\n", why);
    report.write();
    return 0;
  }
  fmt::print("{}\n\n", bed->name());
  bool right = true;
  // An expert's matrix, and one that is larger than any cache.
  for (const codec::MatrixShape shape : {codec::MatrixShape{1408, 2048}, codec::MatrixShape{131072, 2048}})
    for (const bool coded : {false, true}) right &= measure(*bed, report, shape, coded);
  report.write();
  return right ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_recover: {}\n", error.what());
  return 1;
}
