#include "serve/wire/openai/completion_body.h"

#include <algorithm>

#include "serve/wire/sampling_fields.h"
#include "serve/wire/token_fields.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostPrompts = 64;
constexpr std::int64_t kMostCompletions = 8, kMostLogprobs = 20;

CompletionPrompt prompt_of_text(const std::string& text, const Served& served, Service& service) {
  CompletionPrompt prompt;
  prompt.ids = encode_raw(text, tokenizer::AddSpecial::kYes, served, service, "prompt");
  const std::vector<tokenizer::TokenId> plain =
      need_tokenizer(served).encode(text, tokenizer::AddSpecial::kNo);
  const std::size_t added = prompt.ids.size() - std::min(prompt.ids.size(), plain.size());
  while (prompt.unshown < added && (plain.empty() || prompt.ids[prompt.unshown] != plain.front()))
    ++prompt.unshown;
  prompt.text = text;
  return prompt;
}

CompletionPrompt prompt_of_ids(const BodyValue& value, const std::string& path, const Served& served) {
  CompletionPrompt prompt;
  prompt.ids = read_token_ids(value, path, served);
  if (served.tokenizer != nullptr)
    prompt.text = served.tokenizer->decode(prompt.ids, tokenizer::ShowSpecial::kYes);
  return prompt;
}

CompletionPrompt read_prompt(const BodyValue& value, const std::string& path, const Served& served,
                             Service& service) {
  if (value.is_string()) return prompt_of_text(value.string(), served, service);
  if (value.is_array()) return prompt_of_ids(value, path, served);
  refuse_type(path, "a string or an array of token ids", value);
}

std::vector<CompletionPrompt> read_prompts(const Fields& body, const Served& served, Service& service) {
  const BodyValue& value = body.need("prompt");
  std::vector<CompletionPrompt> prompts;
  const bool one = !value.is_array() || value.array().empty() || value.array().front().is_number();
  if (one) {
    prompts.push_back(read_prompt(value, "prompt", served, service));
  } else {
    if (value.array().size() > kMostPrompts)
      body.wrong_value("prompt", "at most " + std::to_string(kMostPrompts) + " prompts");
    for (std::size_t i = 0; i < value.array().size(); ++i)
      prompts.push_back(read_prompt(value.array()[i], element_path("prompt", i), served, service));
  }
  for (const CompletionPrompt& prompt : prompts)
    if (prompt.ids.empty())
      throw ApiError(400, "invalid_value", "'prompt' is empty: expected at least one token").about("prompt");
  return prompts;
}

void read_numbers(const Fields& body, CompletionBody& completion) {
  completion.echo = body.boolean("echo").value_or(false);
  completion.max_tokens = static_cast<std::size_t>(body.integer("max_tokens", 0, INT64_MAX).value_or(16));
  if (completion.max_tokens == 0 && !completion.echo)
    body.wrong_value("max_tokens", "at least 1 unless echo is true");
  completion.n = static_cast<std::size_t>(body.integer("n", 1, kMostCompletions).value_or(1));
  if (const auto best = body.integer("best_of", INT64_MIN, INT64_MAX);
      best && *best != static_cast<std::int64_t>(completion.n))
    throw unsupported_value("best_of", "must be absent or equal to n");
  if (body.has("suffix")) throw unsupported_value("suffix", "must be null: text is not filled in");
  if (const auto logprobs = body.integer("logprobs", 0, kMostLogprobs))
    completion.logprobs = static_cast<std::size_t>(*logprobs);
}

}  // namespace

CompletionBody read_completion(const Fields& body, const Served& served, Service& service) {
  CompletionBody completion;
  completion.model = body.string("model").value_or("");
  read_numbers(body, completion);
  completion.stops = read_stops(body, "stop");
  completion.stream = body.boolean("stream").value_or(false);
  if (const std::optional<Fields> options = body.object("stream_options"))
    completion.include_usage = options->boolean("include_usage").value_or(false);
  completion.cache_prompt = body.boolean("cache_prompt").value_or(true);
  completion.return_progress = body.boolean("return_progress").value_or(false);
  completion.timings_per_token = body.boolean("timings_per_token").value_or(false);
  for (const char* name : {"response_format", "tools", "grammar", "json_schema"})
    if (body.has(name)) throw unsupported_value(name, "is not accepted here");
  completion.prompts = read_prompts(body, served, service);
  return completion;
}

}  // namespace sluice::serve
