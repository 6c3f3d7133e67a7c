// What a device's caches begin with, brought there before the first event.
#pragma once

#include <span>

#include "experts/device_plan.h"
#include "experts/layer_decider.h"
#include "fetch/device/device_store.h"
#include "fetch/memory/expert_store.h"

namespace sluice::fetch {

// Reads these experts, passes them through the host's staging, and returns when their copies are done: caches
// count on them from the first event on. The host keeps those that its own caches begin with. `start`: by
// ascending layer. `decider` orders the reads. REQUIRES: no event has begun. Error(kIo), (kCorrupt).
void bring_start(std::span<const experts::DeviceUpdate> start, experts::LayerDecider& decider,
                 ExpertStore& host, DeviceStore& device);

}  // namespace sluice::fetch
