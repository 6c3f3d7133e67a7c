// The plan of a device's event from what its residency has decided.
#pragma once

#include "experts/device_plan.h"
#include "experts/layer_decider.h"

namespace sluice::engine {

// Replaces `plan`. The experts that are assigned to the device, those that it has first, both ascending;
// without a residency of the device all are streamed.
void device_plan_of(const experts::LayerDecision& decision, experts::DevicePlan& plan);

}  // namespace sluice::engine
