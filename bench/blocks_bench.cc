// sluice_bench_blocks [--mib N] [--rounds N] [--isa NAME] [--threads N] [--format NAME] [--json FILE]
// Products with matrices in blocks of codes and activations in fp32 or in codes of 8 bits (int8). One token
// out of memory, in three shapes, beside the rate of memory and the same loop out of the L1 cache; 128 tokens
// beside the rate of the FMA units; those with fp32 beside the product by decoded rows, whose bits it must
// have.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/machine/system_memory.h"
#include "base/machine/thread_pool.h"
#include "device/space.h"
#include "kernels/products/blocks/block_data.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"
#include "kernels_limits.h"
#include "kernels_suite.h"
#include "measure.h"
#include "report.h"

namespace sluice {
namespace {

using codec::MatrixShape;
using kernels::Context;
using kernels::FormatRow;

constexpr MatrixShape kShapes[] = {{2048, 768}, {768, 2048}, {4096, 14336}};
constexpr MatrixShape kSmall = {16, 512};  // stays in the L1 cache with its activations
constexpr std::size_t kSmallTimes = 4000, kTokens = 128;
// Decoded rows are slow: so many matrices of them for one of the kernels.
constexpr std::size_t kFewer = 8;

constexpr std::size_t kNone = SIZE_MAX;

std::string shape_name(MatrixShape shape) { return fmt::format("{}x{}", shape.rows, shape.columns); }

struct Line {
  std::size_t workload;
  double bytes = 0, flop = 0;
  std::size_t small = kNone, decoded = kNone;  // lines of the same loop out of the L1 cache, of decoded rows
};

// All measurements of one format. Workloads refer to it.
class FormatBench {
 public:
  FormatBench(const kernels::Blocks& blocks, Context ctx, std::size_t bytes)
      : format_(blocks.format), ctx_(ctx), coded_ctx_(ctx), decoded_(kernels::decoded_format(format_)) {
    coded_ctx_.activations = kernels::ActivationForm::kInt8;
    std::mt19937_64 random(1);
    for (std::size_t p = 0; p < format_.plane_count(); ++p) {
      const std::size_t size = bytes / format_.bytes(kShapes[0]) * format_.plane_bytes(kShapes[0], p);
      planes_[p].resize(size);
      size_[p] = size;
    }
    // One matrix's bytes again and again: random numbers take longer than products.
    std::vector<std::byte> first;
    for (std::size_t p = 0; p < format_.plane_count(); ++p) {
      first.resize(format_.plane_bytes(kShapes[0], p));
      kernels::fill_blocks(blocks, p, kernels::BlockScales::kAlike, random, first);
      for (std::size_t at = 0; at < size_[p]; at += first.size())
        std::memcpy(planes_[p].data() + at, first.data(), std::min(first.size(), size_[p] - at));
    }
    x_.resize(kTokens * kernels::arranged_floats(14336));
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = normal(random);
    y_.resize(kTokens * 4096);
    for (const MatrixShape shape : kShapes) code(shape);
    code(kSmall);
  }

  void run(std::size_t rounds, bench::Report& report) {
    check({37, 512}, 1);
    check({37, 512}, 13);
    check_coded({37, 512}, 1);
    check_coded({37, 512}, 13);
    add_limits();
    for (const MatrixShape shape : kShapes) add(shape, 1);
    add(kShapes[0], kTokens);
    measure(workloads_, rounds);
    print(report);
  }

 private:
  codec::MatrixRef matrix(MatrixShape shape, std::size_t index) const {
    codec::MatrixRef ref{&format_, shape};
    for (std::size_t p = 0; p < format_.plane_count(); ++p)
      ref.planes[p] = device::host_space().address(planes_[p].data() + index * format_.plane_bytes(shape, p));
    return ref;
  }
  std::size_t count(MatrixShape shape) const {
    std::size_t least = SIZE_MAX;
    for (std::size_t p = 0; p < format_.plane_count(); ++p)
      least = std::min<std::size_t>(least, size_[p] / format_.plane_bytes(shape, p));
    return least;
  }
  void multiply(const codec::MatrixRef& w, std::size_t tokens, float* y) const {
    kernels::matmul(ctx_, x_.data(), tokens, w, {}, y, w.shape.rows);
  }
  // Makes the activations of matrices with so many columns codes.
  void code(MatrixShape shape) {
    bench::Aligned<float>& codes = coded_[shape.columns];
    codes.resize(kTokens * kernels::arranged_floats(shape.columns));
    kernels::arrange_for(coded_ctx_, matrix({1, shape.columns}, 0), x_.data(), kTokens, shape.columns,
                         codes.data());
  }
  const float* codes(const codec::MatrixRef& w) const { return coded_.at(w.shape.columns).data(); }
  void multiply_coded(const codec::MatrixRef& w, std::size_t tokens, float* y) const {
    kernels::matmul(coded_ctx_, codes(w), tokens, w, {}, y, w.shape.rows);
  }
  void multiply_decoded(const codec::MatrixRef& w, std::size_t tokens, float* y) const {
    decoded_.driver->multiply(ctx_, decoded_.of(ctx_.isa), {x_.data(), tokens, w, {}, y, w.shape.rows});
  }

  void check(MatrixShape shape, std::size_t tokens) {
    std::vector<float> found(tokens * shape.rows), wanted(found.size());
    multiply(matrix(shape, 1), tokens, found.data());
    multiply_decoded(matrix(shape, 1), tokens, wanted.data());
    // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    SLUICE_CHECK(std::memcmp(found.data(), wanted.data(), found.size() * 4) == 0, std::string(format_.name));
  }

  // Against plain code.
  void check_coded(MatrixShape shape, std::size_t tokens) {
    std::vector<float> found(tokens * shape.rows), wanted(found.size());
    const codec::MatrixRef w = matrix(shape, 1);
    multiply_coded(w, tokens, found.data());
    Context plain = coded_ctx_;
    plain.isa = Isa::kScalar;
    kernels::matmul(plain, codes(w), tokens, w, {}, wanted.data(), shape.rows);
    // Bits, not values. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    SLUICE_CHECK(std::memcmp(found.data(), wanted.data(), found.size() * 4) == 0, std::string(format_.name));
  }

  std::size_t add_line(bench::Workload workload, double bytes, double flop, std::size_t small = kNone) {
    lines_.push_back({workloads_.size(), bytes, flop, small});
    workloads_.push_back(std::move(workload));
    return lines_.size() - 1;
  }

  void add_limits() {
    const std::size_t threads = ctx_.pool->threads();
    const std::size_t part = size_[0] / threads / 32768 * 32768;
    read_ = add_line({"read, 8 streams",
                      [this, threads, part](std::size_t) {
                        ctx_.pool->parallel_for(threads, [&](std::size_t i) {
                          sink_ = sink_ ^ bench::read_streams({planes_[0].data() + i * part, part}, part / 8);
                        });
                      }},
                     static_cast<double>(part * threads), 0);
    small_ = add_small("16x512 in the L1 cache", ctx_, x_.data());
    coded_small_ = add_small("16x512 in the L1 cache, int8", coded_ctx_, coded_.at(kSmall.columns).data());
    float sum = 0;
    const double flop = bench::fma_peak_run(ctx_.isa, &sum) * static_cast<double>(threads);
    peak_ = add_line({"FMA peak",
                      [this, threads](std::size_t) {
                        ctx_.pool->parallel_for(threads, [&](std::size_t) {
                          float some = 0;
                          bench::fma_peak_run(ctx_.isa, &some);
                        });
                      }},
                     0, flop);
  }

  std::size_t add_small(const char* name, const Context& ctx, const float* x) {
    const std::size_t threads = ctx.pool->threads();
    return add_line({name,
                     [this, &ctx, x, threads](std::size_t) {
                       ctx.pool->parallel_for(threads, [&](std::size_t i) {
                         Context alone = ctx;
                         alone.pool = nullptr;
                         float y[kSmall.rows];
                         const codec::MatrixRef w = matrix(kSmall, i);
                         for (std::size_t n = 0; n < kSmallTimes; ++n)
                           kernels::matmul(alone, x, 1, w, {}, y, kSmall.rows);
                       });
                     }},
                    static_cast<double>(threads * kSmallTimes * format_.bytes(kSmall)),
                    2.0 * static_cast<double>(threads * kSmallTimes * kSmall.elements()));
  }

  void add(MatrixShape shape, std::size_t tokens) {
    const std::size_t all = tokens == 1 ? count(shape) : std::min<std::size_t>(count(shape), 8);
    const std::size_t fewer = std::max<std::size_t>(1, all / kFewer);
    const auto bytes = [&](std::size_t n) { return static_cast<double>(n * format_.bytes(shape)); };
    const auto flop = [&](std::size_t n) { return 2.0 * static_cast<double>(n * shape.elements() * tokens); };
    const std::string name = fmt::format("{} m={}", shape_name(shape), tokens);
    const std::size_t exact = add_line({name,
                                        [this, shape, tokens, all](std::size_t) {
                                          for (std::size_t i = 0; i < all; ++i)
                                            multiply(matrix(shape, i), tokens, y_.data());
                                        }},
                                       bytes(all), flop(all), small_);
    add_line({name + ", int8",
              [this, shape, tokens, all](std::size_t) {
                for (std::size_t i = 0; i < all; ++i) multiply_coded(matrix(shape, i), tokens, y_.data());
              }},
             bytes(all), flop(all), coded_small_);
    lines_[exact].decoded =
        add_line({name + ", decoded rows",
                  [this, shape, tokens, fewer](std::size_t round) {
                    for (std::size_t i = 0; i < fewer; ++i)
                      multiply_decoded(matrix(shape, (round * fewer + i) % count(shape)), tokens, y_.data());
                  }},
                 bytes(fewer), flop(fewer), small_);
  }

  // Shares of each round, of a rate in bytes or in operations.
  std::vector<double> shares(const Line& line, double Line::*amount, const Line& limit) const {
    return bench::shares_of(line.*amount, workloads_[line.workload].seconds, limit.*amount,
                            workloads_[limit.workload].seconds);
  }

  void print(bench::Report& report) const {
    const Line &read = lines_[read_], &peak = lines_[peak_];
    for (const Line& line : lines_) {
      const bench::Workload& w = workloads_[line.workload];
      const auto rate = [&](double amount) {
        return amount == 0 ? std::string("-")
                           : fmt::format("{:.2f}", amount / bench::quantile(w.seconds, 0.5) / 1e9);
      };
      const auto median = [](const std::vector<double>& all) {
        return all.empty() ? std::string("-") : fmt::format("{:.2f}", bench::quantile(all, 0.5));
      };
      std::vector<double> of_read, of_small, of_less, of_peak, of_decoded;
      if (line.bytes != 0) of_read = shares(line, &Line::bytes, read);
      if (line.small != kNone) of_small = shares(line, &Line::bytes, lines_[line.small]);
      for (std::size_t r = 0; r < of_small.size(); ++r) of_less.push_back(std::max(of_read[r], of_small[r]));
      if (line.flop != 0) of_peak = shares(line, &Line::flop, peak);
      if (line.decoded != kNone) of_decoded = shares(line, &Line::flop, lines_[line.decoded]);
      const std::string name = std::string(format_.name) + ' ' + w.name;
      fmt::print("{:<42} {:>30} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6}\n", name, bench::times(w),
                 rate(line.bytes), rate(line.flop / 2), median(of_read), median(of_small), median(of_less),
                 median(of_peak), median(of_decoded));
      bench::Row row{name, line.bytes, line.flop, w.seconds};
      if (!of_less.empty()) row.limit = "the smaller of memory and the L1 cache", row.shares = of_less;
      if (!of_decoded.empty()) row.figures["x decoded rows"] = bench::quantile(of_decoded, 0.5);
      row.detail = line.small == kNone || w.name.ends_with("decoded rows") ||
                   !w.name.starts_with(shape_name(kShapes[0]));
      report.add(row);
    }
  }

  const codec::MatrixFormat& format_;
  Context ctx_, coded_ctx_;
  FormatRow decoded_;
  bench::Aligned<std::byte> planes_[codec::kMostPlanes];
  std::size_t size_[codec::kMostPlanes] = {};
  bench::Aligned<float> x_, y_;
  std::map<std::size_t, bench::Aligned<float>> coded_;  // activations in codes, by columns
  std::vector<bench::Workload> workloads_;
  std::vector<Line> lines_;
  std::size_t read_ = kNone, small_ = kNone, coded_small_ = kNone, peak_ = kNone;
  volatile std::uint64_t sink_ = 0;
};

int run(int argc, char** argv) {
  bench::check_options(argc, argv, {"mib", "rounds", "threads", "isa", "format", "json"});
  const Bytes wanted = bench::whole_option(argc, argv, "mib", 256, 128) * kMiB;
  const Bytes memory = std::min(wanted, free_memory(read_memory_limits()) / 4);
  const std::size_t rounds = bench::whole_option(argc, argv, "rounds", 7);
  const auto threads = static_cast<unsigned>(
      std::min<std::uint64_t>(bench::whole_option(argc, argv, "threads", usable_cpus()), 1024));
  const std::string isa = bench::option(argc, argv, "isa", "auto"),
                    only = bench::option(argc, argv, "format", "");
  ThreadPool pool(threads);
  const Context ctx{.pool = &pool, .isa = parse_isa(isa)};
  fmt::print("{}; {}, {} threads, {} a format, {} rounds\n", cpu_info().model, isa_name(ctx.isa), threads,
             format_bytes(memory), rounds);
  fmt::print("{:<42} {:>30} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6}\n", "format, rows x columns", "time",
             "GB/s", "GMAC/s", "/read", "/L1", "/less", "/FMA", "x rows");
  bench::Report report("blocks", argc, argv);
  for (const kernels::Blocks& blocks : kernels::all_blocks())
    if (only.empty() || only == blocks.format.name) FormatBench(blocks, ctx, memory).run(rounds, report);
  report.write();
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "sluice_bench_blocks: {}\n", e.what());
    return 1;
  }
}
