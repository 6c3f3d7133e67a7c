// Copies that no event waits for: updates of the device's cache, prefetches, and those of measurements.
#include <algorithm>

#include "fetch/device/device_store.h"

namespace sluice::fetch {

using device::Ticket;
using device::Traffic;
using experts::ExpertId;
using experts::Part;
using experts::Parts;

std::optional<PlacedExpert> DeviceStore::on_host(ExpertId id, Parts slices) const {
  std::optional<PlacedExpert> place = host_.resident(id);
  if (!place || !in_slices()) return place;
  if (slices.has(Part::kLsb) && place->memory.rest == nullptr) return std::nullopt;
  if (!slices.has(Part::kLsb)) place->memory.rest = nullptr;
  return place;
}

DeviceView DeviceStore::spare_view(std::size_t which, const PlacedExpert& place) const {
  if (!in_slices()) return DeviceView::in(buffers_.address(which), place);
  DeviceView view = DeviceView::base_in(buffers_.address(which), place);
  if (place.memory.rest != nullptr) view.put_rest(lsb_buffers_.address(which), place.rest_bytes());
  return view;
}

// The host drops it now. The modelled clock says that it is on the device: so it shall be.
void DeviceStore::finish_update(ExpertId id) {
  if (std::ranges::find(updates_, id, &experts::DeviceUpdate::id) != updates_.end()) begin_updates();
  const auto found = experts_.find(id);
  if (found == experts_.end() || found->second.ready.done()) return;
  ++counters_.updates_late;
  for (const Ticket& ticket : found->second.copies)
    if (ticket) device_.link().promote(ticket);
  for (const Ticket& ticket : found->second.copies) ticket.event().settled().wait();
}

void DeviceStore::begin_updates() {
  std::erase_if(updates_, [&](const experts::DeviceUpdate& update) {
    const std::optional<PlacedExpert> place = on_host(update.id, update.parts);
    if (!place || !buffers_.any()) return false;
    ++counters_.updates;
    copy(update.id, *place, Traffic::kUpdate, DeviceStage::kStays);
    return true;
  });
}

void DeviceStore::prefetch(std::span<const experts::PartRequest> requests) {
  const auto named = [&](ExpertId id) {
    return std::ranges::find(requests, id, &experts::PartRequest::id) != requests.end();
  };
  std::size_t ahead = 0;
  for (auto expert = experts_.begin(); expert != experts_.end();) {
    const bool is_ahead = expert->second.is_in(DeviceStage::kAhead);
    const bool unwanted = is_ahead && !named(expert->first) && !uses_.contains(expert->first);
    counters_.wasted += unwanted ? 1 : 0;
    ahead += is_ahead && !unwanted ? 1 : 0;
    expert = unwanted ? drop(expert) : std::next(expert);
  }
  for (const experts::PartRequest& one : requests) {
    if (ahead + 2 >= staging_ || !buffers_.any()) return;
    if (experts_.contains(one.id)) continue;
    const std::optional<PlacedExpert> place = on_host(one.id, one.parts);
    if (!place) continue;
    ++counters_.prefetches;
    ++ahead;
    copy(one.id, *place, Traffic::kPrefetch, DeviceStage::kAhead);
  }
}

}  // namespace sluice::fetch
