#include "setup/prompt_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"
#include "flags/command_line.h"
#include "model/architecture.h"
#include "setup/open_model.h"
#include "setup/open_tokenizer.h"
#include "setup/token_input.h"
#include "streams/standard_error.h"
#include "tokenizer/text/text_check.h"

namespace sluice::app {

void add_prompt_flags(Command& command, PromptFlags& flags) {
  Command* group = command.add_choice("Prompt");
  const auto add = [&](Setting setting, std::vector<std::string>& values, const char* help) {
    group->add_option(setting, &values, help);
  };
  add(Setting::kPrompt, flags.prompts, "The text to go on from; several times: a batch, decoded together");
  add(Setting::kFile, flags.files, "File that holds the prompt; - is standard input");
  add(Setting::kTokens, flags.tokens, "Prompt as token ids, taken verbatim: 1,2,3");
}

namespace {

std::vector<std::vector<tokenizer::TokenId>> tokens_of(const PromptFlags& flags, const EngineFlags& engine,
                                                       const OpenModel& open, const EncodePrompt& encode) {
  std::vector<std::vector<tokenizer::TokenId>> prompts;
  for (const std::string& list : flags.tokens) prompts.push_back(parse_token_list(list, Setting::kTokens));
  if (!prompts.empty()) return prompts;
  if (open.tokenizer == nullptr)
    throw Error(ErrorKind::kInvalid, "the model has no tokenizer")
        .in(engine.model)
        .expected("tokenizer.json, vocab.json with merges.txt, or tokenizer.model beside it")
        .found("none of them")
        .fix("give the prompt as " + Setting::kTokens + " 1,2,3");
  const auto add = [&](const std::string& text, const std::string& place, ErrorKind empty) {
    prompts.push_back(encode
                          ? encode(text)
                          : encode_file(*open.tokenizer, text, place, tokenizer::AddSpecial::kYes, engine));
    if (prompts.back().empty())
      throw Error(empty, "the prompt has no tokens")
          .in(place)
          .expected("text of 1 or more tokens")
          .found(text.empty() ? "no text" : "text that makes none")
          .fix("give some text, or " + Setting::kTokens);
  };
  for (const std::string& text : flags.prompts) add(text, mark(Setting::kPrompt), ErrorKind::kUsage);
  for (const std::string& file : flags.files)
    add(read_input_text(file), input_name(file), ErrorKind::kInvalid);
  return prompts;
}

}  // namespace

std::vector<std::vector<tokenizer::TokenId>> prompt_tokens(const PromptFlags& flags,
                                                           const EngineFlags& engine, const OpenModel& open,
                                                           const EncodePrompt& encode) {
  std::vector<std::vector<tokenizer::TokenId>> prompts = tokens_of(flags, engine, open, encode);
  const Setting setting = !flags.tokens.empty()    ? Setting::kTokens
                          : !flags.prompts.empty() ? Setting::kPrompt
                                                   : Setting::kFile;
  for (const std::vector<tokenizer::TokenId>& prompt : prompts)
    tokenizer::check_ids(prompt, open.model.config.vocab, setting,
                         setting == Setting::kTokens ? ErrorKind::kUsage : ErrorKind::kInvalid);
  return prompts;
}

std::size_t positions_for(std::size_t prompt_tokens, std::size_t max_tokens, const EngineFlags& engine,
                          const OpenModel& open) {
  const std::size_t context = context_tokens(engine, open.model);
  const bool most = context == open.model.config.max_positions;
  if (prompt_tokens > context)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens", context))
        .found(fmt::format("{} tokens", prompt_tokens))
        .fix(most ? "shorten the prompt: the model takes no longer one"
                  : "shorten the prompt, or raise " + Setting::kContext + " up to the model's maximum");
  // For a model with an encoder, the prompt is the encoder's input, and the answer stands alone.
  const std::size_t before = open.model.config.has_encoder() ? 0 : prompt_tokens;
  return std::max<std::size_t>(1, std::min(context, before + max_tokens));
}

void warn_of_full_context(std::span<const engine::StopReason> reasons, const EngineFlags& engine,
                          const OpenModel& open) {
  const auto ended = std::ranges::count(reasons, engine::StopReason::kContext);
  if (ended == 0 || engine.quiet) return;
  const std::size_t context = context_tokens(engine, open.model), most = open.model.config.max_positions;
  print_warning(
      "{}: the context of {} tokens is full, and ended {} before {} did; {}", flag(Setting::kContext),
      context, reasons.size() == 1 ? "the answer" : fmt::format("{} of {} answers", ended, reasons.size()),
      flag(Setting::kPredict),
      context < most
          ? fmt::format("give a larger {}, at most {}", flag(Setting::kContext), most)
          : "the model has no larger one: give a shorter prompt, or a smaller " + flag(Setting::kPredict));
}

}  // namespace sluice::app
