// What a device's caches begin with, brought there before the first event.
#pragma once

#include "experts/layer_decider.h"
#include "fetch/device/device_store.h"
#include "fetch/memory/expert_store.h"

namespace sluice::engine {

// Carries out experts::start_events(): reads the experts, passes them through the host's staging, and returns
// when their copies are done: caches count on them from the first event on. `decider` orders the reads.
// REQUIRES: a device among its policies, and no event has begun. Error(kIo), (kCorrupt).
void bring_start(experts::LayerDecider& decider, fetch::ExpertStore& host, fetch::DeviceStore& device);

}  // namespace sluice::engine
