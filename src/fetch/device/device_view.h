// An expert in a buffer of a device.
#pragma once

#include "device/address.h"
#include "fetch/expert_view.h"

namespace sluice::fetch {

// Plain value; the layout must outlive it.
struct DeviceView {
  static constexpr Bytes kAlignment = 256;  // for each region in the buffer

  const ExpertLayout* layout = nullptr;
  std::uint32_t hidden = 0;  // the model's
  device::Address first = {}, rest = {};
  bool in_regions = false;  // `first` is the region `base`, else the view
  Bytes first_bytes = 0, rest_bytes = 0;

  // Where these bytes of `place` go in a buffer at `buffer`.
  static DeviceView in(device::Address buffer, const PlacedExpert& place);
  // The same, with the region `rest` in a buffer of its own, or nowhere.
  static DeviceView base_in(device::Address buffer, const PlacedExpert& place);
  void put_rest(device::Address buffer, Bytes bytes) { rest = buffer, rest_bytes = bytes; }
  // Bytes of a buffer that holds any view of the largest expert of `largest_bytes` in two regions.
  static constexpr Bytes buffer_bytes(Bytes largest_bytes) { return largest_bytes + 2 * kAlignment; }

  Bytes bytes() const { return first_bytes + rest_bytes; }
  // The matrices, in the device's memory. `low`: without the slice `rest`, though it may be there.
  ExpertView view(bool low) const;
};

}  // namespace sluice::fetch
