// What a replay by a lossy router replaced, for people and for scripts.
#pragma once

#include <cstdint>
#include <string>

#include "base/json/json.h"
#include "commands/simulate/simulate_options.h"
#include "lab/replay/routed_replay.h"

namespace sluice::app {

// As `run` has it.
Json smoe_routing_json(const lab::ReplayRouter& router, const lab::ReplayRouting& routing);
// It counts decoded tokens alone, since prompts are routed exactly.
std::string smoe_loss_text(const lab::ReplayRouter& router, const lab::ReplayRouting& routing);
// A trace does not say by which rule its model limits a token's selection: warns that this many choices
// differ.
void warn_of_own_rule(const SimulateOptions& options, std::uint64_t differs);

}  // namespace sluice::app
