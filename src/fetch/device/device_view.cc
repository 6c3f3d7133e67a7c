#include "fetch/device/device_view.h"

namespace sluice::fetch {

DeviceView DeviceView::in(device::Address buffer, const PlacedExpert& place) {
  DeviceView view{.layout = place.layout,
                  .hidden = place.hidden,
                  .first = buffer,
                  .in_regions = place.in_regions(),
                  .first_bytes = place.first_bytes(),
                  .rest_bytes = place.rest_bytes()};
  if (view.rest_bytes > 0) view.rest = buffer + round_up(view.first_bytes, kAlignment);
  return view;
}

DeviceView DeviceView::base_in(device::Address buffer, const PlacedExpert& place) {
  PlacedExpert base = place;
  base.memory.rest = nullptr;
  return in(buffer, base);
}

ExpertView DeviceView::view(bool low) const {
  ExpertPlaces places;
  (in_regions ? places.base : places.view) = first;
  if (rest_bytes > 0 && !low) places.rest = rest;
  return expert_view(*layout, hidden, places);
}

}  // namespace sluice::fetch
