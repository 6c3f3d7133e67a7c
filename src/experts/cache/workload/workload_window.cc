#include "experts/cache/workload/workload_window.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

WorkloadWindow::WorkloadWindow(std::uint32_t experts, const WindowRules& rules)
    : rules_(rules), tokens_(experts) {
  SLUICE_CHECK(rules.steps > 0);
}

void WorkloadWindow::add(std::span<const std::uint32_t> tokens) {
  SLUICE_CHECK(tokens.size() == tokens_.size());
  for (std::size_t e = 0; e < tokens.size(); ++e) tokens_[e] += tokens[e];
}

std::span<const Swap> WorkloadWindow::end_step(std::span<const std::uint8_t> resident) {
  if (++steps_ < rules_.steps) return {};
  return end_prompt(resident);
}

std::span<const Swap> WorkloadWindow::end_prompt(std::span<const std::uint8_t> resident) {
  const std::span<const Swap> swaps = chunk(resident);
  forget();
  return swaps;
}

std::span<const Swap> WorkloadWindow::chunk(std::span<const std::uint8_t> resident) {
  return swaps_.choose(tokens_, resident, {.most = rules_.swaps, .unconditional = rules_.unconditional});
}

void WorkloadWindow::forget() {
  std::ranges::fill(tokens_, 0.0);
  steps_ = 0;
}

void WorkloadWindow::grow(std::uint32_t experts) {
  if (experts > tokens_.size()) tokens_.resize(experts);
}

}  // namespace sluice::experts
