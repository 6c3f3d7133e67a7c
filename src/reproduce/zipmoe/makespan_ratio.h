// How far schedules stay from the lower bound, over random instances. SPEC §1.5, §1.6.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::reproduce {

struct MakespanRatio {
  std::size_t instances = 0;
  double mean = 0, worst = 0;  // makespan / lower bound
  double worst_of_bound = 0;   // the worst ratio as a share of 3 - 1/L
};
// Draws instances as SPEC §1.5 does: 2 to 8 experts, 1 or 3 tensors, K of 1, 2, 4 and L of 1, 2, 3, 6. Equal
// seeds give equal instances to all schedulers. Error(kUsage) for an unknown scheduler.
MakespanRatio makespan_ratio(const std::string& scheduler, std::size_t instances, std::uint64_t seed);

}  // namespace sluice::reproduce
