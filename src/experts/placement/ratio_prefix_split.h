// Experts join the device in the order of what they gain there, and the best state on the way is taken. Ours;
// SPEC §3.3. O(n log n), like greedy_split.h, and far nearer to the optimum: without limit on slots only the
// one expert at the border keeps the answer from the optimum of the relaxed problem, in which experts may be
// cut.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/placement/split.h"

namespace sluice::experts {

// Thread-compatible.
class RatioPrefixSplit {
 public:
  // Sets `on_device` (n) to 1 for the experts of the device, to 0 for all others. An expert for which no slot
  // is left is passed over. Among the states on the way, the empty device included, those with the least
  // makespan are the best, then those with the least sum of both sides, then the first.
  SplitTimes split(const SplitCosts& costs, std::span<std::uint8_t> on_device);

 private:
  std::vector<std::uint32_t> order_;   // the active experts, in the order of what they gain
  std::vector<std::uint32_t> joined_;  // those that join the device, in that order
  std::vector<double> host_;           // (joined + 1): the host's time when so many have joined
};

}  // namespace sluice::experts
