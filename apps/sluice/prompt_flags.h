// The prompts of commands that generate: -p, -f or --tokens. Given several times: a batch.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "engine_flags.h"

namespace sluice::app {

struct PromptFlags {
  std::vector<std::string> prompts, files, tokens;
};

void add_prompt_flags(CLI::App& command, PromptFlags& flags);
// One list of ids a prompt, in the order given. Error(kInvalid) without a tokenizer unless they are given as
// ids.
std::vector<std::vector<model::TokenId>> prompt_tokens(const PromptFlags& flags, const EngineFlags& engine,
                                                       const OpenModel& open);
// Positions to reserve for a prompt (none where it is an encoder's input) and at most `max_tokens` more.
// Error(kInvalid) if the prompt is longer than the context.
std::size_t positions_for(std::size_t prompt_tokens, std::size_t max_tokens, const EngineFlags& engine,
                          const OpenModel& open);

// Where the context ended an answer: a warning that says what helps, unless --quiet.
void warn_of_full_context(std::span<const engine::GenerateResult> results, const EngineFlags& engine,
                          const OpenModel& open);

}  // namespace sluice::app
