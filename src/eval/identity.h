// What the results of an evaluation depend on.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/engine.h"

namespace sluice::eval {

// The weights and how they are computed with. A packed store is known by its manifest, a directory by the
// names, sizes and times of its weight files and the content of config.json.
Json identity_of(const engine::Engine& engine);

// Whether results depend on what was computed before: of a router, a limit on misses or a precision that goes
// by what happens to be in memory. Such an evaluation cannot be continued with the same results. With the
// options of an engine, whose presets are filled in.
bool depends_on_history(const engine::EngineOptions& options);

}  // namespace sluice::eval
