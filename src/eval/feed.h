// Tokens into a sequence: as a prompt, as a generation, or the first as one and the rest as the other.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "engine/engine.h"

namespace sluice::eval {

inline constexpr std::size_t kAllOfIt = std::numeric_limits<std::size_t>::max();

// Tokens at positions of the sequence below `prompt` go in chunks, as a prompt does; each later one is a step
// by itself, as in a generation, so that routers which change the model's choice in steps do so. With exact
// routing the logits are the same bits either way. `sink` as Engine::prefill has it, by index in `tokens`.
// Errors as Engine::step.
void feed(engine::Engine& engine, engine::Sequence& sequence, std::span<const model::TokenId> tokens,
          std::size_t prompt, const engine::LogitSink& sink);

}  // namespace sluice::eval
