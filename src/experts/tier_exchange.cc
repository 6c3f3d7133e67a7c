#include "experts/tier_exchange.h"

#include <algorithm>

namespace sluice::experts {

TierExchange TierExchanger::exchange(std::uint32_t layer, bool by_layer, const DevicePlan& plan,
                                     const Residency& device, const ResidencyView& host,
                                     const HybridTimeline& clock) {
  given_.clear();
  offered_.clear();
  // What leaves before it has arrived is not there to be given back; the host has it.
  for (const Eviction& gone : plan.evicted) {
    const bool arrived = std::erase(under_way_, gone.id) == 0;
    if (by_layer && gone.id.layer != layer) continue;
    if (arrived && device.parts(gone.id).empty() && host.parts(gone.id).empty()) offered_.push_back(gone.id);
  }
  take_arrived(layer, device, host, clock);
  const auto take = [&](ExpertId id, double remaining) {
    if (remaining > 0)
      under_way_.push_back(id);
    else if (!host.parts(id).empty())
      given_.push_back(id);
  };
  for (const DeviceUse& use : plan.uses) {
    if (!use.stays || use.from == DeviceBytes::kSlot) continue;
    if (use.from == DeviceBytes::kLink)
      given_.push_back(use.id);  // the host is asked for it
    else
      take(use.id, use.remaining);
  }
  for (const DeviceUpdate& update : plan.updates) take(update.id, update.remaining);
  std::ranges::sort(given_);
  return {given_, offered_};
}

void TierExchanger::take_arrived(std::uint32_t layer, const Residency& device, const ResidencyView& host,
                                 const HybridTimeline& clock) {
  std::erase_if(under_way_, [&](ExpertId id) {
    if (id.layer != layer || clock.remaining(id) > 0) return false;
    if (device.computable(id) && !host.parts(id).empty()) given_.push_back(id);
    return true;
  });
}

}  // namespace sluice::experts
