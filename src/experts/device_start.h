// What the caches of a device begin with, decided layer by layer as events.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/cache/residency.h"
#include "experts/core/demand.h"
#include "experts/core/ids.h"
#include "experts/device_plan.h"

namespace sluice::experts {

class LayerDecider;

// Experts of one layer that are to be on the device before its first event: all pass through the host, and
// none is computed.
struct StartEvent {
  std::uint32_t layer = 0;
  std::vector<ExpertId> experts = {};      // ascending …
  std::vector<std::uint32_t> tokens = {};  // … and one token for each
  EventOutcome host = {};                  // which keeps those that its own cache begins with
  DevicePlan device = {};

  Demand demand() const { return {experts, tokens}; }
};

// In the order in which the caches name the layers. REQUIRES: a device.
std::vector<StartEvent> start_events(const LayerDecider& decider);

}  // namespace sluice::experts
