#include "experts/cache/workload/workload_ema.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

WorkloadEma::WorkloadEma(std::uint32_t experts, const EmaRules& rules)
    : rules_(rules), tokens_(experts), score_(experts) {
  SLUICE_CHECK(rules.gamma >= 0 && rules.gamma < 1 && rules.ratio >= 1);
}

void WorkloadEma::add(std::span<const std::uint32_t> tokens) {
  SLUICE_CHECK(tokens.size() == tokens_.size());
  for (std::size_t e = 0; e < tokens.size(); ++e) tokens_[e] += tokens[e];
}

std::span<const Swap> WorkloadEma::end_step(std::span<const std::uint8_t> resident) {
  const std::span<const Swap> swaps = chunk(resident);
  forget();
  return swaps;
}

std::span<const Swap> WorkloadEma::chunk(std::span<const std::uint8_t> resident) {
  average();
  return swaps_.choose(next_, resident, {.most = rules_.swaps, .ratio = rules_.ratio});
}

void WorkloadEma::forget() {
  average();
  score_.swap(next_);
  std::ranges::fill(tokens_, 0.0);
}

void WorkloadEma::average() {
  next_.resize(score_.size());
  for (std::size_t e = 0; e < score_.size(); ++e)
    next_[e] = rules_.gamma * score_[e] + (1 - rules_.gamma) * tokens_[e];
}

void WorkloadEma::grow(std::uint32_t experts) {
  if (experts <= tokens_.size()) return;
  tokens_.resize(experts);
  score_.resize(experts);
}

}  // namespace sluice::experts
