#include "experts/device_slices.h"

namespace sluice::experts {

DeviceSlices device_slices(PrecisionMode mode, Parts room) {
  const Parts least = least_parts(mode);
  return {.room = room, .least = least - (least - room), .uses_spare = mode == PrecisionMode::kDbsc};
}

Parts SlicesOnDevice::parts(ExpertId id) const {
  const Parts* const parts = parts_.find(id);
  return parts == nullptr ? Parts() : *parts;
}

void SlicesOnDevice::used(ExpertId id, Parts view, bool stays) {
  Parts& parts = parts_.at(id);
  parts = stays ? that_fit(parts | view) : Parts();
}

}  // namespace sluice::experts
