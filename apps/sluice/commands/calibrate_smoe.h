// `sluice calibrate` for a store of exact weights: what the experts cost that the router smoe replaces.
#pragma once

#include "commands/calibration_steps.h"

namespace sluice::app {

struct EngineFlags;

// Prints a table, or one JSON object, and keeps the result in the store.
void calibrate_smoe(const EngineFlags& flags, const CalibrationRequest& request);

}  // namespace sluice::app
