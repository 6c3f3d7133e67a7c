// The request to `sluice eval`, and its two kinds of evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/setting.h"
#include "eval/feed.h"
#include "flags/engine_flags.h"

namespace sluice::app {

struct EvalOptions {
  EngineFlags engine;
  std::string file;                         // a text, or:
  std::string task, data;                   // a choice task
  std::int64_t window = 0, stride = 0;      // 0: the default
  std::int64_t limit = 0;                   // items; 0: all
  std::optional<std::int64_t> prefill;      // tokens that go in chunks; empty: prompt_tokens()
  std::string reference, reference_memory;  // a model to compare with
  std::string state;                        // file; empty: none
  std::string machine = "slicemoe";         // for energy_model
};

// Error(kUnsupported) for a model with an encoder.
void check_decoder(const model::Model& model, const std::string& path);
// Prints the engine's warnings to standard error. Error(kUsage) if there is a state and results depend on
// earlier computation.
void check_engine(const EvalOptions& options, const engine::Engine& engine);
// Tokens of each window or item that go in together; eval::kAllOfIt: all. The value of Setting::kPrefill,
// else all, but few if single tokens are computed otherwise.
std::size_t prompt_tokens(const EvalOptions& options, const engine::Engine& engine);
Json prefill_json(std::size_t prompt);  // the number; null: all
// Warns on standard error if single tokens are computed otherwise and fewer than half of the scored tokens
// are: then the requested policies hardly show. A step predicts `stepped` of `scored` tokens.
void warn_of_few_steps(const EvalOptions& options, const engine::Engine& engine, std::size_t stepped,
                       std::size_t scored);
// "NAME       TEXT\n" for standard output, broken between words where the terminal is narrower.
std::string eval_row(std::string_view name, std::string_view text);
// Prints what this call computed otherwise than the exact model to standard output; the call found
// `resumed` of `all` results in its state.
void print_losses(const engine::Engine& engine, std::size_t resumed, std::size_t all);
// Names the device that computed beside the host, if there was one, likewise.
void print_device(const engine::Engine& engine);

void evaluate_text(const EvalOptions& options);
void evaluate_choices(const EvalOptions& options);

}  // namespace sluice::app
