// `sluice simulate` of caches: what each would have held of recorded routing.
#pragma once

#include <vector>

#include "commands/simulate/cache_rows.h"
#include "commands/simulate/simulate_options.h"

namespace sluice::app {

// Prints a table, or one JSON object.
void cache_replay(const SimulateOptions& options, std::vector<CacheRow> rows);

}  // namespace sluice::app
