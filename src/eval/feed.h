// Feeds tokens into a sequence: as a prompt, as a generation, or first as a prompt and then as a generation.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "tokenizer/text/token_id.h"

namespace sluice::engine {
class Engine;
class Sequence;
struct LogitSink;
}  // namespace sluice::engine

namespace sluice::eval {

inline constexpr std::size_t kAllOfIt = std::numeric_limits<std::size_t>::max();

// Tokens at positions of the sequence below `prompt` go in chunks, like a prompt; each later token is a
// step of its own, like in a generation, so that routers which change the model's choice in steps do so. With
// exact routing both ways give the same logits, bit for bit. `sink` as in Engine::prefill, by index in
// `tokens`. Errors as Engine::step.
void feed(engine::Engine& engine, engine::Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
          std::size_t prompt, const engine::LogitSink& sink);

}  // namespace sluice::eval
