#include "experts/prefetch/workload_forecast.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::experts {

void top_by_workload(std::span<const std::uint32_t> tokens, std::span<const double> scores, std::size_t size,
                     std::vector<std::uint32_t>& experts) {
  SLUICE_CHECK(tokens.size() == scores.size());
  std::ranges::sort(experts, [&](std::uint32_t a, std::uint32_t b) {
    if (tokens[a] != tokens[b]) return tokens[a] > tokens[b];
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  experts.resize(std::min(size, experts.size()));
}

void WorkloadForecast::predict(const PredictedRouting& predicted) {
  const std::uint32_t n = predicted.experts;
  const std::size_t all = std::size_t{predicted.tokens} * n;
  SLUICE_CHECK(predicted.logits.size() == all && predicted.scores.size() == all && predicted.top_k <= n);
  top_k_ = predicted.top_k;
  predicted_.clear();
  counts_.assign(n, 0);
  mass_.assign(n, 0.0);
  ranking_.resize(n);
  order_.reserve(n);  // whatever is resident later
  const auto kth = static_cast<std::ptrdiff_t>(top_k_);
  for (std::size_t t = 0; t < predicted.tokens; ++t) {
    const std::span<const double> logits = predicted.logits.subspan(t * n, n);
    std::iota(ranking_.begin(), ranking_.end(), 0u);
    std::ranges::partial_sort(ranking_, ranking_.begin() + kth, [&](std::uint32_t a, std::uint32_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    std::sort(ranking_.begin(), ranking_.begin() + kth);
    for (const std::uint32_t e : std::span(ranking_).first(top_k_)) {
      predicted_.push_back(e);
      ++counts_[e];
    }
    for (std::uint32_t e = 0; e < n; ++e) mass_[e] += predicted.scores[t * n + e];
  }
}

std::span<const std::uint32_t> WorkloadForecast::predicted(std::uint32_t token) const {
  return std::span(predicted_).subspan(std::size_t{token} * top_k_, top_k_);
}

std::span<const std::uint32_t> WorkloadForecast::order(std::span<const std::uint8_t> resident,
                                                       std::size_t size) {
  SLUICE_CHECK(resident.empty() || resident.size() == counts_.size());
  order_.clear();
  for (std::uint32_t e = 0; e < counts_.size(); ++e)
    if (counts_[e] > 0 && (resident.empty() || resident[e] == 0)) order_.push_back(e);
  top_by_workload(counts_, mass_, size, order_);
  return order_;
}

}  // namespace sluice::experts
