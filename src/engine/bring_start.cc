#include "engine/bring_start.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "experts/device_start.h"

namespace sluice::engine {
namespace {

void bring(const experts::StartEvent& event, experts::LayerDecider& decider, fetch::ExpertStore& host,
           fetch::DeviceStore& device) {
  device.release_host(event.host, event.device);
  host.begin(decider.order(host.prepare(event.host, event.demand()).missing));
  device.begin(event.layer, event.device);
  for (;;) {
    device.release_pins();
    while (device.pins() > 0 && host.next_needs_pins()) device.wait_for_a_pin();
    std::optional<fetch::ExpertStore::Pin> pin = host.next();
    if (!pin) break;
    const experts::ExpertId id = pin->id();
    device.used(id, device.use(std::move(*pin)).ready);
  }
  device.finish_event();
}

}  // namespace

void bring_start(experts::LayerDecider& decider, fetch::ExpertStore& host, fetch::DeviceStore& device) {
  try {
    for (const experts::StartEvent& event : experts::start_events(decider))
      bring(event, decider, host, device);
  } catch (const Error&) {
    device.abandon_event();
    host.abandon_event();
    throw;
  }
}

}  // namespace sluice::engine
