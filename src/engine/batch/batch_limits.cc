#include "engine/batch/batch_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"
#include "engine/engine.h"
#include "engine/session/prefix_cache.h"
#include "model/architecture.h"
#include "tokenizer/text/text_check.h"

namespace sluice::engine {

BatchLimits::BatchLimits(Engine& engine, std::size_t stretch)
    : engine_(engine),
      context_(std::min(engine.plan().positions, engine.prefixes().most_positions())),
      stretch_(stretch),
      has_encoder_(engine.model().config.has_encoder()) {}

std::size_t BatchLimits::begins(const BatchRequest& request) const {
  return has_encoder_ ? 1 : request.prompt.size();
}

std::size_t BatchLimits::reserved(const BatchRequest& request) const {
  return std::min(context_, begins(request) + request.max_tokens.value_or(stretch_));
}

void BatchLimits::check(const BatchRequest& request) const {
  if (request.prompt.empty())
    throw Error(ErrorKind::kInvalid, "the prompt has no tokens")
        .in("the prompt")
        .expected("1 or more tokens")
        .found("none")
        .fix("give some text");
  tokenizer::check_ids(request.prompt, engine_.model().config.vocab, "the prompt");
  check_length(request);
  check_sampler(request);
  SLUICE_CHECK(!request.prompt_logprobs ||
               (*request.prompt_logprobs >= 1 && *request.prompt_logprobs <= request.prompt.size()));
  if (request.prompt_logprobs && (has_encoder_ || !request.logprobs))
    throw Error(ErrorKind::kUsage, "log-probabilities of the prompt cannot be given")
        .in("the prompt's log-probabilities")
        .expected("a decoder alone, and a number of likeliest tokens")
        .found(has_encoder_ ? "an encoder-decoder" : "no such number");
}

void BatchLimits::check_length(const BatchRequest& request) const {
  const std::size_t most = has_encoder_ ? engine_.plan().encoder_positions : context_;
  if (request.prompt.size() > most)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens", most))
        .found(fmt::format("{} tokens", request.prompt.size()))
        .fix("shorten the prompt or raise " + Setting::kContext);
  const std::size_t answer = request.max_tokens.value_or(0), room = context_ - begins(request);
  if (answer > room)
    throw Error(ErrorKind::kInvalid, "prompt and answer are longer than the context")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens behind the prompt", room))
        .found(fmt::format("{} tokens", answer))
        .fix("ask for fewer tokens or raise " + Setting::kContext);
}

void BatchLimits::check_sampler(const BatchRequest& request) const {
  request.sampler.validate();
  SLUICE_CHECK(request.guide == nullptr || !request.ignore_eos, "a guide decides when its answer ends");
  SLUICE_CHECK(request.sampler.takes_likeliest() || engine_.plan().draws,
               "the plan has no room for drawing tokens");
  for (const LogitBias& one : request.sampler.bias)
    tokenizer::check_ids({&one.id, 1}, engine_.model().config.vocab, Setting::kLogitBias, ErrorKind::kUsage);
}

}  // namespace sluice::engine
