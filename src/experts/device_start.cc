#include "experts/device_start.h"

#include <algorithm>

#include "experts/layer_decider.h"

namespace sluice::experts {

std::vector<StartEvent> start_events(const LayerDecider& decider) {
  std::vector<StartEvent> events;
  for (const DeviceUpdate& one : decider.device()->start()) {
    if (events.empty() || events.back().layer != one.id.layer) events.push_back({.layer = one.id.layer});
    events.back().experts.push_back(one.id);
  }
  for (StartEvent& event : events) {
    std::ranges::sort(event.experts);
    event.tokens.assign(event.experts.size(), 1);
    const Residency& host = decider.policies().residency(event.layer);
    const std::optional<DeviceSlices>& slices = decider.policies().device->slices;
    const Parts view = slices ? slices->room : Parts();
    for (const ExpertId id : event.experts) {
      event.device.uses.push_back({.id = id, .tokens = 1, .stays = true, .view = view});
      event.host.misses.push_back({.id = id, .parts = host.parts(id), .asked = view, .view = view});
    }
  }
  return events;
}

}  // namespace sluice::experts
