// Measures what a device costs, with the model's own experts in the view that they are computed in, and with
// host and device at work together where a run has them so. SPEC §10 (G3).
#pragma once

#include <string>
#include <string_view>

#include "engine/forward/common/measure_profile.h"
#include "engine/plan/device_profile.h"
#include "engine/plan/lacking_experts.h"

namespace sluice::engine {

class DeviceUnit;  // engine/forward/unit/device_unit.h

struct DeviceMeasures {
  // How experts cross the link, one of device_profile.h; both units compute from that.
  std::string_view view;
  // The device computes experts. Else DeviceProfile::run is empty, and the host's times are without its work.
  bool experts = true;
  LackingExperts lacking = {};  // none of them is measured
};

// `name`: of the device, with all that its costs depend on. No event runs, and none has run. Charges one
// expert to the host's `staging`. REQUIRES: a model with experts. Error(kIo), (kCorrupt), (kBudget);
// Error(kInterrupted).
DeviceProfile measure_device(const MeasureTools& tools, DeviceUnit& unit, const std::string& name,
                             const DeviceMeasures& what, const MeasureOptions& options);

}  // namespace sluice::engine
