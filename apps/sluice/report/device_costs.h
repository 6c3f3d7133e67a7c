// What a device was measured to cost, for people.
#pragma once

#include <vector>

#include "engine/plan/device_profile.h"
#include "report/loss_rows.h"

namespace sluice::app {

// The device, its link, and what computing an expert takes on both units.
std::vector<ReportRow> device_cost_rows(const engine::DeviceProfile& profile);

}  // namespace sluice::app
