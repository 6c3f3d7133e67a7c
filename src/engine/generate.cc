#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "engine/stop_strings.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

void check(const Engine& engine, const model::Tokenizer* tokenizer, const GenerateRequest& request) {
  if (request.prompt.empty())
    throw Error(ErrorKind::kInvalid, "the prompt has no tokens").in("-p").fix("give some text, or --tokens");
  const std::size_t positions = engine.options().positions;
  if (request.prompt.size() > positions)
    throw Error(ErrorKind::kInvalid, "the prompt is longer than the context")
        .in("-c")
        .expected(fmt::format("at most {} tokens", positions))
        .found(fmt::format("{} tokens", request.prompt.size()))
        .fix("shorten the prompt or raise -c");
  for (const std::string& stop : request.stop)
    if (stop.empty()) throw Error(ErrorKind::kUsage, "a stop string is empty").in("--stop");
  if (tokenizer == nullptr && !request.stop.empty())
    throw Error(ErrorKind::kUsage, "stop strings need a tokenizer, and this model has none").in("--stop");
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"length", "eos", "stop", "interrupted"};
  return kNames[static_cast<int>(reason)];
}

GenerateResult generate(Engine& engine, const model::Tokenizer* tokenizer, const GenerateRequest& request) {
  check(engine, tokenizer, request);
  const std::unique_ptr<Sequence> sequence = engine.new_sequence();
  Sampler sampler(request.sampler);
  std::vector<model::TokenId> context = request.prompt;
  std::optional<model::StreamDecoder> decoder;
  if (tokenizer != nullptr) decoder.emplace(*tokenizer, model::ShowSpecial::kNo);
  StopStrings stops(request.stop);
  GenerateResult result;
  std::string text;
  const auto interrupted = [&] { return request.should_stop && request.should_stop(); };
  const auto give_out = [&](const std::string& piece) {
    text += piece;
    if (request.on_text) request.on_text(piece, result.tokens.size());
  };

  const auto start = Clock::now();
  // Chunks of the prompt are steps of their own, so that an interrupt does not wait for all of them.
  std::vector<float> first_logits;
  std::size_t done = 0;
  while (done < context.size() && request.max_tokens > 0 && !interrupted()) {
    const std::size_t count = std::min(engine.chunk(), context.size() - done);
    const bool last = done + count == context.size();
    if (done == 0) engine.begin_forward();
    const Slice slice{sequence.get(), 0, count};
    engine.step({std::span(context).subspan(done, count), {&slice, 1}, Phase::kPrefill},
                {[&](std::size_t t) { return last && t + 1 == count; },
                 [&](std::size_t, std::span<const float> logits) { first_logits.assign(logits.begin(), logits.end()); }});
    done += count;
  }
  result.prefill_s = seconds(Clock::now() - start);

  std::span<const float> logits = first_logits;
  const auto decode_start = Clock::now();
  result.reason = logits.empty() && request.max_tokens > 0 ? StopReason::kInterrupted : StopReason::kLength;
  const std::vector<model::TokenId>& eos = engine.model().config.eos;
  while (!logits.empty() && result.tokens.size() < request.max_tokens) {
    const model::TokenId token = sampler.next(logits, context);
    context.push_back(token);
    result.tokens.push_back(token);
    if (!request.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end()) {
      result.reason = StopReason::kEos;
      break;
    }
    give_out(decoder ? stops.append(decoder->append(token)) : std::string());
    if (stops.found()) {
      result.reason = StopReason::kStopString;
      break;
    }
    if (result.tokens.size() == request.max_tokens) break;
    if (sequence->length() == sequence->positions()) break;  // the context is full
    if (interrupted()) {
      result.reason = StopReason::kInterrupted;
      break;
    }
    logits = engine.decode(*sequence, token);
  }
  result.decode_s = seconds(Clock::now() - decode_start);
  if (decoder) {
    if (!stops.found()) {
      std::string rest = stops.append(decoder->finish());
      if (!stops.found()) rest += stops.finish();
      if (!rest.empty()) give_out(rest);
    }
    result.text = text;
  }
  return result;
}

}  // namespace sluice::engine
