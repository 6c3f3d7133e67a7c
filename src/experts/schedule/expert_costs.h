// The times that a layer is planned with: schedulers order reads by them, placements divide experts by them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// Time to compute one expert on one unit, by its number of tokens: a line, or measured points.
struct ComputeTime {
  double fixed = 0, per_token = 0;  // the line fixed + tokens · per_token, where nothing was measured
  std::vector<std::pair<std::uint32_t, double>> measured = {};  // by tokens, ascending

  // Between measured points, and beyond them, straight lines; never below 0.
  double of(std::uint32_t tokens) const;
};

// All in one unit of time (SPEC §1.3).
struct ExpertCosts {
  ScheduleCosts fetch;
  ComputeTime run;  // on the host (p of SPEC §1.3)
  // Costs of a device, where there is one: computing an expert there, and bringing it there.
  ComputeTime device_run = {};
  double transfer = 0;
};

}  // namespace sluice::experts
