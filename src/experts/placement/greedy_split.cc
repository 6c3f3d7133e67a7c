#include "experts/placement/greedy_split.h"

#include <algorithm>

namespace sluice::experts {

SplitTimes GreedySplit::split(const SplitCosts& costs, std::span<std::uint8_t> on_device) {
  check_sizes(costs, on_device);
  rank_by_gap(costs, order_);
  std::ranges::fill(on_device, std::uint8_t{0});
  SlotCount slots(costs);
  SplitTimes times;
  for (const auto& [gap, i] : order_) {
    if (times.device + costs.device[i] <= times.host + costs.host[i] && slots.admits(i)) {
      on_device[i] = 1;
      times.device += costs.device[i];
      slots.take(i);
    } else {
      times.host += costs.host[i];
    }
  }
  return times;
}

}  // namespace sluice::experts
