// The flags of the router recorded, which plays a routing trace, for benchmarks.
#pragma once

#include "engine/plan/options.h"
#include "experts/registry.h"
#include "flags/engine_flags.h"
#include "model/config.h"

namespace sluice::app {

// Routing is played by one router, and that router plays nothing else. Error(kUsage).
void check_played(const EngineFlags& flags, const experts::RouterPolicy& router);
// For the router recorded: reads the trace that it plays, and fits it to the model. Does nothing for other
// routers. Error(kInvalid), (kUsage) naming trace or flag; (kInterrupted).
void read_script(const EngineFlags& flags, const model::ModelConfig& config, engine::EngineOptions& options);

}  // namespace sluice::app
