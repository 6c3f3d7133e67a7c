#include "kernels_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "base/float16.h"
#include "kernels_limits.h"

namespace sluice::bench {

Suite::Suite(std::size_t matrices, unsigned most_threads, std::vector<Isa> isas, std::vector<Isa> packed_isas)
    : matrices_(matrices), isas_(std::move(isas)), packed_isas_(std::move(packed_isas)) {
  std::mt19937_64 random(7);
  weights_.resize(matrices * kMatrixBytes);
  for (unsigned threads = 1; threads <= most_threads; threads *= 2) {
    pools_.push_back(std::make_unique<ThreadPool>(threads));
  }
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < kRows * kCols; ++i) {
    const std::uint16_t word = float_to_bf16(normal(random) * 0.02f);
    std::memcpy(&weights_[2 * i], &word, 2);
  }
  for (std::size_t m = 1; m < matrices; ++m)
    std::memcpy(&weights_[m * kMatrixBytes], &weights_[0], kMatrixBytes);
  x_.resize(kMostTokens * kCols);
  for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = normal(random);
}

void Suite::add_limits() {
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    ThreadPool* pool = pools_[p].get();
    const std::size_t part = weights_.size() / pool->threads() / 32768 * 32768;
    for (const std::size_t apart : {part / 8, std::size_t{4096}}) {
      read_limit_[p].push_back(workloads_.size());
      add_unlimited({fmt::format("read, 8 streams {} apart, {}T", format_bytes(apart), pool->threads()),
                     [this, pool, part, apart](std::size_t) {
                       pool->parallel_for(pool->threads(), [&](std::size_t i) {
                         sink_ = sink_ ^ read_streams({weights_.data() + i * part, part}, apart);
                       });
                     }},
                    static_cast<double>(part * pool->threads()), 0, p);
    }
    for (const Isa isa : packed_isas_) {
      float sum = 0;
      const double flop = fma_peak_run(isa, &sum) * pool->threads();
      if (flop == 0) continue;
      fma_limit_[p][isa].push_back(workloads_.size());
      add_unlimited({fmt::format("FMA peak {}, {}T", isa_name(isa), pool->threads()),
                     [this, pool, isa](std::size_t) {
                       pool->parallel_for(pool->threads(), [&](std::size_t) {
                         float sum = 0;
                         fma_peak_run(isa, &sum);
                         sink_ = sink_ + static_cast<std::uint64_t>(sum);
                       });
                     }},
                    0, flop, p);
      lines_.back().isa = isa;
    }
  }
}

void Suite::add(Workload workload, double bytes, double flop, std::size_t pool, Isa isa) {
  add_unlimited(std::move(workload), bytes, flop, pool);
  lines_.back().isa = isa;
  lines_.back().read_limits = read_limit_[pool];
  lines_.back().fma_limits = fma_limit_[pool][isa];
}
void Suite::add_unlimited(Workload workload, double bytes, double flop, std::size_t pool) {
  lines_.push_back({.index = workloads_.size(), .bytes = bytes, .flop = flop, .pool = pool});
  workloads_.push_back(std::move(workload));
}

// Compares a line with the limit that it comes closer to. The page shows all threads, and the best
// instruction sets with and without rounding.
Row Suite::row_of(const Line& line, const std::vector<double>& of_read,
                  const std::vector<double>& of_fma) const {
  const Workload& w = workloads_[line.index];
  Row out{.name = w.name, .bytes = line.bytes, .flops = line.flop, .seconds = w.seconds};
  const bool compute = !of_fma.empty() && (of_read.empty() || quantile(of_fma, 0.5) > quantile(of_read, 0.5));
  out.shares = compute ? of_fma : of_read;
  if (!out.shares.empty())
    out.limit = compute ? workloads_[line.fma_limits[0]].name
                        : fmt::format("read, {}T", pools_[line.pool]->threads());
  out.detail = line.pool + 1 < pools_.size() ||
               (line.isa && *line.isa != isas_.back() && *line.isa != packed_isas_.back());
  return out;
}

void Suite::run(std::size_t rounds, Report& report) {
  measure(workloads_, rounds);
  fmt::print("{:<38} {:>32} {:>8} {:>8} {:>9} {:>8}\n", "workload", "median (min … max)", "GB/s", "of read",
             "GFLOP/s", "of FMA");
  for (const Line& line : lines_) {
    const Workload& w = workloads_[line.index];
    const double seconds = quantile(w.seconds, 0.5);
    const auto rate = [&](double amount) {
      return amount == 0 ? std::string("-") : fmt::format("{:.1f}", amount / seconds * 1e-9);
    };
    // Ratio to the limit measured in the same round, then the median of the rounds.
    const auto shares = [&](double Line::*amount, const std::vector<std::size_t>& limits) {
      std::vector<double> ratios;
      if (limits.empty() || line.*amount == 0) return ratios;
      for (std::size_t i = 0; i < w.seconds.size(); ++i) {
        double limit = 0;
        for (const std::size_t l : limits)
          limit = std::max(limit, lines_[l].*amount / workloads_[l].seconds[i]);
        ratios.push_back(line.*amount / w.seconds[i] / limit);
      }
      return ratios;
    };
    const auto median = [](const std::vector<double>& ratios) {
      return ratios.empty() ? std::string("-") : fmt::format("{:.2f}", quantile(ratios, 0.5));
    };
    const std::vector<double> of_read = shares(&Line::bytes, line.read_limits);
    const std::vector<double> of_fma = shares(&Line::flop, line.fma_limits);
    fmt::print("{:<38} {:>32} {:>8} {:>8} {:>9} {:>8}\n", w.name, times(w), rate(line.bytes), median(of_read),
               rate(line.flop), median(of_fma));
    report.add(row_of(line, of_read, of_fma));
  }
  fmt::print("(sum {})\n", sink_ & 1);
}

}  // namespace sluice::bench
