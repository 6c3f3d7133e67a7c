// Measures what stands between the products of a CUDA device, attention above all; checks the bits of each.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/float16.h"
#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gpu/cuda/cuda_bed.h"
#include "kernels/ops/ops.h"
#include "measure.h"
#include "report.h"

namespace {

using namespace sluice;
using kernels::AttentionShape;
using kernels::Floats;
using kernels::gpu::CudaBed;

constexpr int kRounds = 7;
constexpr int kAtOnce = 16;             // launches of a small operation in a round
constexpr std::size_t kScratches = 64;  // attention_scratch_floats() of a device

struct NamedShape {
  const char* name;
  AttentionShape shape;
  bool latent = false;  // values are the beginnings of keys
};

class Bench {
 public:
  Bench(CudaBed& bed, bench::Report& report)
      : bed_(bed), report_(report), pool_(std::max(1u, std::thread::hardware_concurrency())) {
    context_.pool = &pool_;
    context_.isa = best_isa();
  }

  void attention() {
    static const NamedShape kShapes[] = {{"32 heads of 4", {32, 4, 128, 128, 0.088f}},
                                         {"16 heads of 16", {16, 16, 128, 128, 0.088f}},
                                         {"64 heads of 8, window 128", {64, 8, 64, 64, 0.125f, 128}},
                                         {"16 latent heads", {16, 1, 576, 512, 0.07f}, true}};
    for (const NamedShape& one : kShapes)
      for (const auto& [tokens, positions] :
           {std::pair<std::size_t, std::size_t>{1, 512}, {1, 4096}, {1, 32768}, {8, 4096}, {512, 512}})
        attention(one, tokens, positions);
  }

  void norms() {
    for (const std::size_t columns : {128, 2048, 7168})
      for (const std::size_t rows : {1, 32, 512}) {
        const std::vector<float> x = numbers(rows * columns), weight = numbers(columns);
        std::vector<float> expected(rows * columns);
        kernels::rms_norm(context_, x.data(), rows, columns, columns, weight, 1e-6f, expected.data(),
                          columns);
        kernels::op::RmsNorm op;
        op.x = put(x);
        op.rows = rows;
        op.columns = op.x_stride = op.y_stride = columns;
        op.weight = {put(weight), columns};
        op.eps = 1e-6f;
        op.y = room(rows * columns);
        const double seconds =
            bed_.seconds(kRounds, [&](kernels::UnitKernels& unit, const device::Access& access) {
              for (int i = 0; i < kAtOnce; ++i) unit.run(access, op);
            });
        print("rms_norm", fmt::format("{} x {}", rows, columns), seconds / kAtOnce,
              8.0 * static_cast<double>(rows * columns), same(op.y, expected));
        bed_.clear();
      }
  }
  bool all_same() const { return all_same_; }

 private:
  std::vector<float> numbers(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> all(count);
    for (float& number : all) number = normal(random_);
    return all;
  }
  std::vector<std::uint16_t> words(std::size_t count) {
    std::vector<std::uint16_t> some(std::min<std::size_t>(count, 1 << 20)), all(count);
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = float_to_bf16(numbers(1)[0]);
    for (std::size_t at = 0; at < count; at += some.size())
      std::copy_n(some.begin(), std::min(some.size(), count - at), all.begin() + static_cast<long>(at));
    return all;
  }
  template <class T>
  Floats put(const std::vector<T>& all) {
    return {bed_.put(std::as_bytes(std::span(all)))};
  }
  Floats room(std::size_t count) { return {bed_.room(count * sizeof(float))}; }
  bool same(Floats found, const std::vector<float>& expected) {
    std::vector<float> all(expected.size());
    bed_.get(found.at, std::as_writable_bytes(std::span(all)));
    return std::memcmp(all.data(), expected.data(), all.size() * sizeof(float)) == 0;
  }

  void print(const std::string& name, const std::string& what, double seconds, double bytes, bool good) {
    all_same_ &= good;
    fmt::print("{:28}{:>22}{:>11.2f} us{:>9.0f} GB/s  {}\n", name, what, 1e6 * seconds,
               1e-9 * bytes / seconds, good ? "same" : "DIFFERENT");
    std::fflush(stdout);
    report_.add({.name = fmt::format("{} {}", name, what), .bytes = bytes, .seconds = {seconds}});
  }

  void attention(const NamedShape& one, std::size_t tokens, std::size_t positions) {
    const AttentionShape& shape = one.shape;
    const std::vector<std::uint16_t> keys = words(positions * shape.kv_heads * shape.key_dim),
                                     values = one.latent
                                                  ? keys
                                                  : words(positions * shape.kv_heads * shape.value_dim);
    const std::vector<float> q = numbers(tokens * shape.heads * shape.key_dim);
    const std::size_t floats = kernels::attention_scratch_floats(shape, positions);
    std::vector<float> expected(tokens * shape.heads * shape.value_dim), scratch(pool_.threads() * floats);
    const auto cache = [&](std::size_t columns) {
      kernels::CacheRows rows;
      rows.rows = positions;
      rows.row_elements = shape.kv_heads * columns;
      rows.heads = shape.kv_heads;
      rows.columns = columns;
      return rows;
    };
    const kernels::CacheRows of_keys = cache(shape.key_dim),
                             of_values = cache(one.latent ? shape.key_dim : shape.value_dim);
    const auto bytes_of = [](const std::vector<std::uint16_t>& all) {
      return reinterpret_cast<const std::byte*>(all.data());
    };
    kernels::attention(context_, shape, q.data(), tokens, positions - tokens,
                       of_keys.view(bytes_of(keys), nullptr), of_values.view(bytes_of(values), nullptr),
                       expected.data(), scratch.data());
    kernels::op::Attention op;
    op.shape = shape;
    op.q = put(q);
    op.tokens = tokens;
    op.first_position = positions - tokens;
    op.keys = of_keys;
    op.keys.data = put(keys).at;
    op.values = of_values;
    op.values.data = one.latent ? op.keys.data : put(values).at;
    op.out = room(expected.size());
    op.scratch_floats = kScratches * floats;
    op.scratch = room(op.scratch_floats);
    const double seconds = bed_.seconds(
        kRounds, [&](kernels::UnitKernels& unit, const device::Access& access) { unit.run(access, op); });
    const std::size_t seen = shape.window == 0 ? positions : std::min(positions, shape.window + tokens);
    const std::size_t row = shape.kv_heads * (shape.key_dim + (one.latent ? 0 : shape.value_dim));
    print(one.name, fmt::format("{} of {} positions", tokens, positions), seconds,
          2.0 * static_cast<double>(seen * row), same(op.out, expected));
    bed_.clear();
  }

  CudaBed& bed_;
  bench::Report& report_;
  ThreadPool pool_;
  kernels::Context context_;
  std::mt19937_64 random_{1};
  bool all_same_ = true;
};

}  // namespace

int main(int argc, char** argv) try {
  bench::check_options(argc, argv, {"json"});
  bench::Report report("gpu_dense", argc, argv);
  std::string why;
  const std::unique_ptr<CudaBed> bed = CudaBed::make(Bytes{4} << 30, {}, why);
  if (bed == nullptr) {
    fmt::print("no CUDA device, nothing was measured: {}\n", why);
    report.write();
    return 0;
  }
  fmt::print("{}\n", bed->name());
  Bench bench(*bed, report);
  bench.attention();
  bench.norms();
  report.write();
  if (!bench.all_same()) {
    fmt::print("some operations have other bits than the host's\n");
    return 1;
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "sluice_bench_gpu_dense: {}\n", error.what());
  return 1;
}
