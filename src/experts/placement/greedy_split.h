// DALI's assignment: experts for which the side matters most choose first, each the side that would end
// earlier with it. DALI (Alg. 1), its slips mended; SPEC §3.3. O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/placement/split.h"

namespace sluice::experts {

// With any number of slots the makespan is at most Σ min(device, host), which is at most twice the least one.
// Thread-compatible.
class GreedySplit {
 public:
  // Sets `on_device` (n) to 1 for the experts of the device, to 0 for all others. A tie goes to the device.
  SplitTimes split(const SplitCosts& costs, std::span<std::uint8_t> on_device);

 private:
  std::vector<RankedPlace> order_;
};

}  // namespace sluice::experts
