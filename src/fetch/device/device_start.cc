#include "fetch/device/device_start.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::fetch {
namespace {

// The experts of one layer, as an event in which each is copied and none is computed.
void bring_layer(std::span<const experts::DeviceUpdate> start, experts::LayerDecider& decider,
                 ExpertStore& host, DeviceStore& device) {
  const std::uint32_t layer = start.front().id.layer;
  std::vector<experts::ExpertId> ids;
  for (const experts::DeviceUpdate& one : start) ids.push_back(one.id);
  std::ranges::sort(ids);
  experts::DevicePlan plan;
  experts::EventOutcome outcome;
  for (const experts::ExpertId id : ids) {
    plan.uses.push_back({.id = id, .tokens = 1, .stays = true});
    outcome.misses.push_back({id, decider.policies().residency(layer).parts(id)});
  }
  const std::vector<std::uint32_t> tokens(ids.size(), 1);
  device.release_host(outcome, plan);
  host.begin(decider.order(host.prepare(outcome, {ids, tokens}).missing));
  device.begin(layer, plan);
  for (;;) {
    device.release_pins();
    while (device.pins() > 0 && host.next_needs_pins()) device.wait_for_a_pin();
    std::optional<ExpertStore::Pin> pin = host.next();
    if (!pin) break;
    const experts::ExpertId id = pin->id();
    device.used(id, device.use(std::move(*pin)).ready);
  }
  device.finish_event();
}

}  // namespace

void bring_start(std::span<const experts::DeviceUpdate> start, experts::LayerDecider& decider,
                 ExpertStore& host, DeviceStore& device) {
  while (!start.empty()) {
    std::size_t count = 1;
    while (count < start.size() && start[count].id.layer == start.front().id.layer) ++count;
    try {
      bring_layer(start.first(count), decider, host, device);
    } catch (const Error&) {
      device.abandon_event();
      host.abandon_event();
      throw;
    }
    start = start.subspan(count);
  }
}

}  // namespace sluice::fetch
