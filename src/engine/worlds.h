// The worlds of an engine (experts/worlds.h): runs of other plans for its model, that its steps may compute
// beside each other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "experts/worlds.h"

namespace sluice::engine {

class Engine;

// What an engine must have for this many worlds at a time, of `positions` tokens each, whose first `shared`
// ones are a prompt that its prefixes() share: one sequence computes that, and each world has another.
void make_room_for_worlds(std::size_t worlds, std::size_t positions, std::size_t shared,
                          EngineOptions& options);

struct WorldPlan {
  EnginePlan plan;  // its policies count. REQUIRES: no device, and a cache that needs no profile
  Bytes cache = 0;  // that its logical memory has for experts
};

// For Step::worlds of the engine's steps, which must outlive it. Everything begins anew. Error(kUsage).
std::unique_ptr<experts::Worlds> make_worlds(const Engine& engine, std::span<const WorldPlan* const> plans);

}  // namespace sluice::engine
