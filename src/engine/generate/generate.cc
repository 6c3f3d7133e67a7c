#include "engine/generate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/batch/batcher.h"
#include "engine/engine.h"
#include "engine/generate/answer.h"
#include "model/architecture.h"

namespace sluice::engine {

void check_request(const Engine& engine, const tokenizer::Tokenizer* tokenizer,
                   const GenerateRequest& request) {
  SLUICE_CHECK(request.sampler.takes_likeliest() || engine.plan().draws,
               "the plan has no room for drawing tokens");
  if (request.prompt.empty())
    throw Error(ErrorKind::kInvalid, "the prompt has no tokens")
        .in("the prompt")
        .expected("1 or more tokens")
        .found("none")
        .fix("give some text, or " + Setting::kTokens);
  const bool encoder = engine.model().config.has_encoder();
  const std::size_t positions = encoder ? engine.plan().encoder_positions : engine.plan().positions;
  if (request.prompt.size() > positions)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens", positions))
        .found(fmt::format("{} tokens", request.prompt.size()))
        .fix("shorten the prompt or raise " + Setting::kContext);
  for (const std::string& stop : request.stop)
    if (stop.empty())
      throw Error(ErrorKind::kUsage, "a stop string is empty")
          .in(Setting::kStop)
          .expected("text that ends the answer")
          .found("\"\"")
          .fix("give " + Setting::kStop + " some text, or leave it out");
  if (tokenizer == nullptr && !request.stop.empty())
    throw Error(ErrorKind::kUsage, "stop strings need a tokenizer, and this model has none")
        .in(Setting::kStop)
        .expected("a model with a tokenizer")
        .found("none beside the model")
        .fix("leave " + Setting::kStop + " out");
}

bool draws(std::span<const GenerateRequest> requests) {
  return std::ranges::any_of(
      requests, [](const GenerateRequest& request) { return !request.sampler.takes_likeliest(); });
}

std::vector<StopReason> stop_reasons(std::span<const GenerateResult> results) {
  std::vector<StopReason> reasons;
  for (const GenerateResult& result : results) reasons.push_back(result.reason);
  return reasons;
}

namespace {

// A limit that the context does not reach is left out: then the context ends the answer.
BatchRequest batched(const Engine& engine, const GenerateRequest& request) {
  BatchRequest batched;
  batched.prompt = request.prompt;
  const std::size_t begins = engine.model().config.has_encoder() ? 1 : request.prompt.size();
  if (request.max_tokens <= engine.plan().positions - begins) batched.max_tokens = request.max_tokens;
  batched.sampler = request.sampler;
  batched.ignore_eos = request.ignore_eos;
  batched.ends = request.ends;
  batched.cache_prompt = request.keep;
  return batched;
}

}  // namespace

std::vector<GenerateResult> generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                                     std::span<const GenerateRequest> requests) {
  for (const GenerateRequest& request : requests) check_request(engine, tokenizer, request);
  SLUICE_CHECK(requests.size() <= engine.plan().sequences, "the plan has room for fewer sequences");
  const Answer::Time start = std::chrono::steady_clock::now();
  std::deque<Answer> answers;
  Batcher batcher(engine, {.parallel = std::max<std::size_t>(requests.size(), 1),
                           .prompts_first = true,
                           .stretch = engine.plan().positions});
  for (const GenerateRequest& request : requests) {
    Answer& answer = answers.emplace_back(tokenizer, request, start);
    if (request.max_tokens == 0) continue;
    if (answer.wants_to_stop())
      answer.on_end({.reason = StopReason::kInterrupted});
    else
      batcher.submit(batched(engine, request), answer);
  }
  const auto check = [&] { std::ranges::for_each(answers, &Answer::check); };
  for (check(); batcher.advance();) check();
  check();

  Answer::Time decoding = start;
  for (const Answer& answer : answers) decoding = std::max(decoding, answer.first_token().value_or(start));
  std::vector<GenerateResult> results;
  for (Answer& answer : answers) results.push_back(answer.finish(decoding));
  return results;
}

GenerateResult generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                        const GenerateRequest& request) {
  return std::move(generate(engine, tokenizer, {&request, 1}).front());
}

}  // namespace sluice::engine
