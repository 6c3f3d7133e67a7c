// What an engine has found out of order at its start, and does otherwise than asked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/run_report.h"
#include "kernels/check/unit_check.h"

namespace sluice::app {

// About the instruction set of the host, and about a device: a line each; none where all is well.
std::vector<std::string> start_warnings(const engine::RunReport& run);
void write_start_warnings(const engine::RunReport& run);

// [{operation, found, of}]: what a device has computed otherwise than the host.
Json device_faults_json(std::span<const kernels::UnitFault> faults);

}  // namespace sluice::app
