// What a device is expected to do, and why: its memory, byte by byte, and the time of a layer on each unit.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json/json.h"
#include "report/loss_rows.h"

namespace sluice::app {

// `tokens`: of a decode step. REQUIRES: the run has a device.
std::vector<ReportRow> device_plan_rows(const engine::RunReport& run, std::uint32_t tokens);
// {memory{}, slots, rests, decode{}, prompt{}, twice_memory{}, twice_link{}}, each of the last four
// {tokens, active, resident, host_s, device_s, both_s, on_device, copied}.
Json device_plan_json(const engine::RunReport& run, std::uint32_t tokens);

}  // namespace sluice::app
