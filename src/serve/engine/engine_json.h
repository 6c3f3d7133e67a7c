// The numbers of a running engine for the page of a server (docs/page.md).
#pragma once

#include "base/json/json.h"
#include "engine/run_report.h"
#include "serve/engine/engine_snapshot.h"

namespace sluice::serve {

// What happened from `before` to `now`.
Json stats_json(const EngineSnapshot& before, const EngineSnapshot& now, double seconds_since_start,
                const Json& memory);
// Accounts of the host and of the device. May be called by any thread: accountants are thread-safe.
Json memory_json(const engine::RunReport& run);

}  // namespace sluice::serve
