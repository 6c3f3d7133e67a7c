// Where the experts of a running model are, as characters for a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace sluice::engine {
struct RunReport;
}

namespace sluice::app {

// One line per layer, one character per expert: F in full, c packed, · on disk, and of those that are on a
// device D in memory, too, or d there alone; coloured if `colour`.
std::string residency_picture(const engine::RunReport& run, bool colour, std::size_t columns);

}  // namespace sluice::app
