// What memory a run took, by name: as JSON, as one line, and as a short line for the live view.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/json/json.h"

namespace sluice::engine {
struct RunReport;
}

namespace sluice::app {

// {budget, peak, accounted, by_name{}}. `peak` is the more of what the accountant held at most and, where no
// other engine is in the process, what the system counted of the process (engine::measured_peak).
enum class Engines { kOne, kSeveral };
Json memory_json(const engine::RunReport& run, Engines engines = Engines::kOne);
Bytes memory_peak(const engine::RunReport& run, Engines engines = Engines::kOne);

// "process 9.1 MiB, dense 7.3 MiB, …": the largest value of each name.
std::string memory_line(const engine::RunReport& run);

// The current value of each name in MiB without units, in at most so many columns: "MiB: process 9.1 dense
// 7.3 …", and behind them the memory of a device: "| device 8.0"; leaves out the smallest, with "…" at the
// end.
std::string memory_line_short(const engine::RunReport& run, std::size_t columns);

}  // namespace sluice::app
