#include "prompt_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "open_tokenizer.h"

namespace sluice::app {

void add_prompt_flags(CLI::App& command, PromptFlags& flags) {
  CLI::Option_group* group = command.add_option_group("Prompt", "One of:");
  flags.prompt_given = group->add_option("-p,--prompt", flags.prompt, "The text to go on from");
  flags.file_given =
      group->add_option("-f,--file", flags.file, "File that holds the prompt; - is standard input");
  flags.tokens_given =
      group->add_option("--tokens", flags.tokens, "Prompt as token ids, taken verbatim: 1,2,3");
  group->require_option(1);
}

std::vector<model::TokenId> prompt_tokens(const PromptFlags& flags, const EngineFlags& engine,
                                          const OpenModel& open) {
  if (flags.tokens_given->count() > 0) return parse_token_list(flags.tokens, "--tokens");
  if (open.tokenizer == nullptr)
    throw Error(ErrorKind::kInvalid, "the model has no tokenizer")
        .in(engine.model)
        .fix("give the prompt as --tokens 1,2,3");
  const bool from_file = flags.file_given->count() > 0;
  return encode_file(*open.tokenizer, from_file ? read_input_text(flags.file) : flags.prompt,
                     from_file ? flags.file : "-p", model::AddSpecial::kYes, engine);
}

std::size_t positions_for(std::size_t prompt_tokens, std::size_t max_tokens, const EngineFlags& engine,
                          const OpenModel& open) {
  const std::size_t context = context_tokens(engine, open.model);
  if (prompt_tokens > context)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in("-c")
        .expected(fmt::format("at most {} tokens", context))
        .found(fmt::format("{} tokens", prompt_tokens))
        .fix("shorten the prompt, or raise -c up to the model's maximum");
  // Behind an encoder the prompt is its input, and the answer stands alone.
  const std::size_t before = open.model.config.has_encoder() ? 0 : prompt_tokens;
  return std::max<std::size_t>(1, std::min(context, before + max_tokens));
}

}  // namespace sluice::app
