// What replays of caches found, for people and for scripts.
#pragma once

#include <vector>

#include "base/json/json.h"
#include "commands/simulate/cache_rows.h"
#include "lab/replay/replay.h"
#include "trace/routing_trace.h"

namespace sluice::app {

// One object of the trace and of one row, or of a list of several.
Json cache_rows_json(const trace::RoutingTrace& trace, const lab::Requests& requests,
                     const std::vector<CacheRow>& rows);
void print_cache_rows(const trace::RoutingTrace& trace, const lab::Requests& requests,
                      const std::vector<CacheRow>& rows);

}  // namespace sluice::app
