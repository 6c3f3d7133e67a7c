// Experts in slices on a device: which slices a slot has room for, which of them are there, and which view an
// expert is computed in. SPEC §4.3, §5.3; docs/hybrid.md.
//
// Caches of a device keep whole slots. A slot gets the slices that its expert is computed with, one by one,
// and keeps those that it has room for: an LSB stays as long as its MSB does.
#pragma once

#include "experts/core/expert_table.h"
#include "experts/core/ids.h"
#include "experts/routing/precision.h"

namespace sluice::experts {

struct DeviceSlices {
  Parts room;  // what a slot holds: the MSB, or both
  // That every use computes with, as far as there is room: what a cache brings in that nobody computes.
  Parts least;
  // The precision dbsc: an LSB that is in the slot is used, though nobody asked for it.
  bool uses_spare = false;
};

DeviceSlices device_slices(PrecisionMode mode, Parts room);

// As decided, not as copied. Thread-compatible.
class SlicesOnDevice {
 public:
  explicit SlicesOnDevice(const DeviceSlices& rules) : rules_(rules) {}

  const DeviceSlices& rules() const { return rules_; }
  Parts parts(ExpertId id) const;  // in its slot
  // What the expert is computed with if `asked` are asked for. Never depends on another memory.
  Parts view(ExpertId id, Parts asked) const { return rules_.uses_spare ? asked | parts(id) : asked; }

  void used(ExpertId id, Parts view, bool stays);  // `stays`: it has a slot from now on
  void brought(ExpertId id, Parts parts) { parts_.at(id) = that_fit(parts); }
  void gone(ExpertId id) { parts_.at(id) = {}; }

 private:
  Parts that_fit(Parts parts) const { return parts - (parts - rules_.room); }

  DeviceSlices rules_;
  ExpertTable<Parts> parts_;
};

}  // namespace sluice::experts
