// What `sluice eval` was asked; its two kinds of evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine_flags.h"
#include "eval/feed.h"

namespace sluice::app {

struct EvalOptions {
  EngineFlags engine;
  std::string file;                         // a text, or:
  std::string task, data;                   // a choice task
  std::int64_t window = 0, stride = 0;      // 0: the default
  std::int64_t limit = 0;                   // of items; 0: all
  std::optional<std::int64_t> prefill;      // tokens that go in chunks; none: prompt_tokens()
  std::string reference, reference_memory;  // a model to compare with
  std::string state;                        // file; empty: none
  std::string machine = "slicemoe";         // of energy_model
};

// Error(kUnsupported) for a model with an encoder.
void check_decoder(const model::Model& model, const std::string& path);
// Warnings about the engine, on standard error. Error(kUsage) if there is a state, and results depend on what
// was computed before.
void check_engine(const EvalOptions& options, const engine::Engine& engine);
// Tokens of each window or item that go in together; eval::kAllOfIt: all. As --prefill says, else all, but
// few where tokens by themselves are computed otherwise.
std::size_t prompt_tokens(const EvalOptions& options, const engine::Engine& engine);
Json prefill_json(std::size_t prompt);  // the number; null: all
// A warning on standard error where tokens by themselves are computed otherwise, and fewer than half of those
// that are scored are: what was asked for hardly shows then. `stepped` of `scored` tokens are predicted by a
// step.
void warn_of_few_steps(const EvalOptions& options, const engine::Engine& engine, std::size_t stepped,
                       std::size_t scored);
// What was computed otherwise than by the exact model, on standard output: by this call, which found
// `resumed` results of `all` in its state.
void print_losses(const engine::Engine& engine, std::size_t resumed, std::size_t all);

void evaluate_text(const EvalOptions& options);
void evaluate_choices(const EvalOptions& options);

}  // namespace sluice::app
