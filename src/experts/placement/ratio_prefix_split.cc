#include "experts/placement/ratio_prefix_split.h"

#include <algorithm>

namespace sluice::experts {

SplitTimes RatioPrefixSplit::split(const SplitCosts& costs, std::span<std::uint8_t> on_device) {
  check_sizes(costs, on_device);
  rank_by_ratio(costs, order_);
  std::ranges::fill(on_device, std::uint8_t{0});
  joined_.clear();
  joined_.reserve(costs.size());
  host_.reserve(costs.size() + 1);
  SlotCount slots(costs);
  double passed_over = 0;
  for (const std::uint32_t i : order_) {
    if (slots.admits(i)) {
      slots.take(i);
      joined_.push_back(i);
    } else {
      passed_over += costs.host[i];
    }
  }
  // The host's times are added up from the last state on: subtracting from a total would round.
  host_.resize(joined_.size() + 1);
  host_.back() = passed_over;
  for (std::size_t m = joined_.size(); m-- > 0;) host_[m] = host_[m + 1] + costs.host[joined_[m]];

  std::size_t best = 0;
  SplitTimes times{.device = 0, .host = host_[0]};
  double device = 0;
  for (std::size_t m = 1; m <= joined_.size(); ++m) {
    device += costs.device[joined_[m - 1]];
    const SplitTimes here{.device = device, .host = host_[m]};
    const double more = here.makespan() - times.makespan();
    if (more > 0 || (more == 0 && here.device + here.host >= times.device + times.host)) continue;
    best = m;
    times = here;
  }
  for (std::size_t m = 0; m < best; ++m) on_device[joined_[m]] = 1;
  return times;
}

}  // namespace sluice::experts
