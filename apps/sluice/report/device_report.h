// What a device did in a run, and what its memory and its link took, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "report/loss_rows.h"

namespace sluice::app {

// Adds `device`, `placement` and `profile` (the three below) of a run with a device; of another one
// `no_device`, why a device that is there is not used, or nothing.
void add_device(Json& json, const engine::RunReport& run);
// {name, memory{}, link{}, busy_s, overruns, host{}, dilation}, {host, device, loads, …, decode{}}, and
// {assigned, hits, active, resident, prefetch{}}. REQUIRES: the run has a device.
Json device_json(const engine::RunReport& run);
Json placement_json(const engine::RunReport& run);
Json device_experts_json(const engine::RunReport& run);
// {hash, measured}: of the costs that decided, and whether this start has measured those of the device.
Json device_profile_json(const engine::RunReport& run);

// What a slot holds and why, and how many bytes a copy moves: as text, and as
// {form, why, slot_bytes, copy_bytes}.
std::string slots_text(const engine::RunReport& run);
Json slots_json(const engine::RunReport& run);
// "exclusive: the host's memory does not hold all experts, …".
std::string tiers_text(const engine::RunReport& run);
// To what the user has limited the link, and what it has without that; empty where no such limit holds.
std::string link_limit_text(const engine::RunReport& run);
// "device 3.1 MiB of 8 MiB, 41 % of experts" at this time, for the live view; empty without a device.
std::string device_figures(const engine::RunReport& run);
// "emulated, dilated x4: no time here is a speed of this program (SPECIFICATION)", for commands without a
// table of the device; empty without a device.
std::string device_text(const engine::RunReport& run);
// Which experts the device does not compute, since it has no good kernels for their formats; empty: it may
// compute all of them. REQUIRES: the run has a device.
std::string lacking_text(const engine::RunReport& run);
std::size_t layers_lacking(const engine::RunReport& run);  // those that have such experts
// Why the device of this run is left alone, by its costs.
std::string resting_reason(const engine::RunReport& run);
// Without a device empty, or why one that is there is not used.
std::vector<ReportRow> device_rows(const engine::RunReport& run);

}  // namespace sluice::app
