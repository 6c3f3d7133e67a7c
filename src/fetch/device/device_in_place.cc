// Experts that a device reads where the host has them.
#include <optional>
#include <utility>

#include "base/error.h"
#include "fetch/device/device_store.h"

namespace sluice::fetch {

using experts::ExpertId;

std::optional<DeviceView> DeviceStore::in_place(const PlacedExpert& place) const {
  const auto find = [&](const std::byte* data, Bytes bytes) -> std::optional<device::Address> {
    const std::optional<device::Address> at = device_.in_place({data, bytes});
    // As in a buffer of the device, so that kernels read both in the same way.
    return at && at->value % DeviceView::kAlignment == 0 ? at : std::nullopt;
  };
  DeviceView view = DeviceView::in({}, place);
  const std::optional<device::Address> first =
      find(place.in_regions() ? place.memory.base : place.memory.view, view.first_bytes);
  if (!first) return std::nullopt;
  view.first = *first;
  if (view.rest_bytes == 0) return view;
  const std::optional<device::Address> rest = find(place.memory.rest, view.rest_bytes);
  if (!rest) return std::nullopt;
  view.put_rest(*rest, view.rest_bytes);
  return view;
}

// What stays, and what goes back to the host, needs a copy of its own; of what is there in part, only the
// rest is copied.
std::optional<DeviceStore::Use> DeviceStore::use_in_place(ExpertStore::Pin& pin) {
  const ExpertId id = pin.id();
  const EventUse& use = uses_.at(id);
  if (use.stays || experts_.contains(id) || host_.expects(id)) return std::nullopt;
  const PlacedExpert needed = needed_of(pin.place(), use.view);
  SLUICE_CHECK(!in_slices() || is_low(use.view) || needed.memory.rest != nullptr,
               "the host computes with fewer slices than the device");
  const std::optional<DeviceView> view = in_place(needed);
  if (!view) return std::nullopt;
  ++counters_.in_place;
  pins_.hold_for_launch(std::move(pin));
  return Use{*view, is_low(use.view), {}};
}

}  // namespace sluice::fetch
