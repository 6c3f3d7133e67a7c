#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/answer.h"
#include "engine/engine.h"
#include "engine/session/sequence.h"
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

std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"length", "context", "eos", "stop", "interrupted"};
  return kNames[static_cast<int>(reason)];
}

std::vector<StopReason> stop_reasons(std::span<const GenerateResult> results) {
  std::vector<StopReason> reasons;
  for (const GenerateResult& result : results) reasons.push_back(result.reason);
  return reasons;
}

std::vector<GenerateResult> generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                                     std::span<const GenerateRequest> requests) {
  for (const GenerateRequest& request : requests) check_request(engine, tokenizer, request);
  SLUICE_CHECK(requests.size() <= engine.plan().sequences, "the plan has room for fewer sequences");
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::deque<Answer> answers;
  std::vector<Answer*> all;
  for (const GenerateRequest& request : requests) {
    sequences.push_back(engine.new_sequence());
    all.push_back(&answers.emplace_back(engine, *sequences.back(), tokenizer, request));
  }
  complete(engine, all);
  std::vector<GenerateResult> results;
  for (Answer& answer : answers) results.push_back(answer.finish());
  return results;
}

GenerateResult generate(Engine& engine, const tokenizer::Tokenizer* tokenizer,
                        const GenerateRequest& request) {
  return std::move(generate(engine, tokenizer, {&request, 1}).front());
}

}  // namespace sluice::engine
