// What a replay with a host and a device is asked for by the flags of `sluice simulate`.
#pragma once

#include "commands/hybrid/hybrid_rows.h"
#include "commands/simulate/simulate_options.h"

namespace sluice::app {

// Error(kUsage).
HybridRequest hybrid_request(const SimulateOptions& options);

}  // namespace sluice::app
