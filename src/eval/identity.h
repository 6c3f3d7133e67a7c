// Everything that the results of an evaluation depend on.
#pragma once

#include <string>

#include "base/json/json.h"
#include "engine/engine.h"

namespace sluice::eval {

// The weights and the arithmetic. A packed store is identified by its manifest, a directory by the names,
// sizes and times of its weight files and the content of config.json.
Json identity_of(const engine::Engine& engine);

// Whether results depend on earlier computation: through a router, a limit on misses or a precision that
// looks at what happens to be in memory. Such an evaluation cannot be continued with the same results. Takes
// an engine's options, with presets filled in.
bool depends_on_history(const engine::EngineOptions& options);

}  // namespace sluice::eval
