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

ExpertView DeviceView::on(const device::Access& access, bool low) const {
  ExpertMemory memory;
  const std::byte* const data = access.data(first, first_bytes);
  (in_regions ? memory.base : memory.view) = data;
  if (rest_bytes > 0 && !low) memory.rest = access.data(rest, rest_bytes);
  return expert_view(*layout, hidden, memory);
}

}  // namespace sluice::fetch
