#include "lab/machine/expert_phase.h"

#include <algorithm>

namespace sluice::lab {

ExpertPhase ExpertClock::time(std::span<const ExpertWork> work) {
  ExpertPhase phase;
  arrivals_.clear();
  double ready = 0;  // when the unit is ready
  for (const ExpertWork& one : work) {
    const double run = machine_.compute_s(static_cast<double>(one.view), one.ops);
    phase.xpu_s += run;
    if (one.msb_read + one.lsb_read == 0) {
      ready += run;
      continue;
    }
    phase.flash_s += machine_.flash_s(static_cast<double>(one.msb_read));
    if (one.lsb_read == 0) arrivals_.push_back({phase.flash_s, run});
  }
  for (const ExpertWork& one : work) {
    if (one.lsb_read == 0) continue;
    phase.flash_s += machine_.flash_s(static_cast<double>(one.lsb_read));
    arrivals_.push_back({phase.flash_s, machine_.compute_s(static_cast<double>(one.view), one.ops)});
  }
  // Already in order of arrival: the channel is serial, and LSBs come behind all MSBs.
  for (const Arrival& arrival : arrivals_) ready = std::max(ready, arrival.at) + arrival.run;
  phase.seconds = std::max(ready, phase.flash_s);
  return phase;
}

}  // namespace sluice::lab
