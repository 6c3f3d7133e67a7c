// What a unit beside the host is to do in an event that was decided without a cache of its own.
#pragma once

#include "experts/device_plan.h"
#include "experts/layer_decider.h"

namespace sluice::engine {

// Replaces `plan`: the experts that are assigned to the unit, ascending, each from the host and none to stay.
void stream_all(const experts::LayerDecision& decision, experts::DevicePlan& plan);

}  // namespace sluice::engine
