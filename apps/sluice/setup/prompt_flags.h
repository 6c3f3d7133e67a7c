// The prompts of commands that generate: text, files or token ids. Several of them make a batch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/generate.h"
#include "flags/engine_flags.h"
#include "setup/open_model.h"

namespace sluice::app {

class Command;

struct PromptFlags {
  std::vector<std::string> prompts, files, tokens;
};

void add_prompt_flags(Command& command, PromptFlags& flags);
// One list of ids per prompt, in the order given; `encode` makes those of a text. Error(kInvalid) for text if
// the model has no tokenizer.
using EncodePrompt = std::function<std::vector<tokenizer::TokenId>(const std::string& text)>;
std::vector<std::vector<tokenizer::TokenId>> prompt_tokens(const PromptFlags& flags,
                                                           const EngineFlags& engine, const OpenModel& open,
                                                           const EncodePrompt& encode = {});
// Positions to reserve for a prompt (0 where it is an encoder's input) and at most `max_tokens` more.
// Error(kInvalid) if the prompt is longer than the context.
std::size_t positions_for(std::size_t prompt_tokens, std::size_t max_tokens, const EngineFlags& engine,
                          const OpenModel& open);

// Warns, unless the user wants quiet, where the context ended one of the answers, and says what helps.
// `reasons`: why each answer ended.
void warn_of_full_context(std::span<const engine::StopReason> reasons, const EngineFlags& engine,
                          const OpenModel& open);

}  // namespace sluice::app
