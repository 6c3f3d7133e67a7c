#include "flags/prompt_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "flags/command_line.h"
#include "flags/open_tokenizer.h"
#include "model/token_ids.h"
#include "streams/standard_error.h"

namespace sluice::app {

void add_prompt_flags(Command& command, PromptFlags& flags) {
  Command* group = command.add_choice("Prompt");
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* help) {
    group->add_option(name, &values, help);
  };
  add("-p,--prompt", flags.prompts, "The text to go on from; several times: a batch, decoded together");
  add("-f,--file", flags.files, "File that holds the prompt; - is standard input");
  add("--tokens", flags.tokens, "Prompt as token ids, taken verbatim: 1,2,3");
}

namespace {

std::vector<std::vector<tokenizer::TokenId>> tokens_of(const PromptFlags& flags, const EngineFlags& engine,
                                                       const OpenModel& open) {
  std::vector<std::vector<tokenizer::TokenId>> prompts;
  for (const std::string& list : flags.tokens) prompts.push_back(parse_token_list(list, "--tokens"));
  if (!prompts.empty()) return prompts;
  if (open.tokenizer == nullptr)
    throw Error(ErrorKind::kInvalid, "the model has no tokenizer")
        .in(engine.model)
        .fix("give the prompt as --tokens 1,2,3");
  const auto add = [&](const std::string& text, const std::string& place, ErrorKind empty) {
    prompts.push_back(encode_file(*open.tokenizer, text, place, tokenizer::AddSpecial::kYes, engine));
    if (prompts.back().empty())
      throw Error(empty, "the prompt has no tokens").in(place).fix("give some text, or --tokens");
  };
  for (const std::string& text : flags.prompts) add(text, "-p", ErrorKind::kUsage);
  for (const std::string& file : flags.files)
    add(read_input_text(file), input_name(file), ErrorKind::kInvalid);
  return prompts;
}

}  // namespace

std::vector<std::vector<tokenizer::TokenId>> prompt_tokens(const PromptFlags& flags,
                                                           const EngineFlags& engine, const OpenModel& open) {
  std::vector<std::vector<tokenizer::TokenId>> prompts = tokens_of(flags, engine, open);
  const char* const flag = !flags.tokens.empty() ? "--tokens" : !flags.prompts.empty() ? "-p" : "-f";
  for (const std::vector<tokenizer::TokenId>& prompt : prompts)
    model::check_token_ids(prompt, open.model.config.vocab, flag);
  return prompts;
}

std::size_t positions_for(std::size_t prompt_tokens, std::size_t max_tokens, const EngineFlags& engine,
                          const OpenModel& open) {
  const std::size_t context = context_tokens(engine, open.model);
  const bool most = context == open.model.config.max_positions;
  if (prompt_tokens > context)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in("-c")
        .expected(fmt::format("at most {} tokens", context))
        .found(fmt::format("{} tokens", prompt_tokens))
        .fix(most ? "shorten the prompt: the model takes no longer one"
                  : "shorten the prompt, or raise -c up to the model's maximum");
  // For a model with an encoder, the prompt is the encoder's input, and the answer stands alone.
  const std::size_t before = open.model.config.has_encoder() ? 0 : prompt_tokens;
  return std::max<std::size_t>(1, std::min(context, before + max_tokens));
}

void warn_of_full_context(std::span<const engine::StopReason> reasons, const EngineFlags& engine,
                          const OpenModel& open) {
  const auto ended = std::ranges::count(reasons, engine::StopReason::kContext);
  if (ended == 0 || engine.quiet) return;
  const std::size_t context = context_tokens(engine, open.model), most = open.model.config.max_positions;
  print_warning("-c: the context of {} tokens is full, and ended {} before -n did; {}", context,
                reasons.size() == 1 ? "the answer" : fmt::format("{} of {} answers", ended, reasons.size()),
                context < most ? fmt::format("give a larger -c, at most {}", most)
                               : "the model has no larger one: give a shorter prompt, or a smaller -n");
}

}  // namespace sluice::app
