// `sluice simulate` of the cache of slices: what it would have held of a recorded run of a model in slices.
#pragma once

#include "commands/simulate/simulate_options.h"

namespace sluice::app {

// Prints some lines, or one JSON object.
void slice_lru_replay(const SimulateOptions& options);

}  // namespace sluice::app
