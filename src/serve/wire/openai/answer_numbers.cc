#include "serve/wire/openai/answer_numbers.h"

#include <algorithm>
#include <variant>

#include "serve/json/utf8.h"

namespace sluice::serve {
namespace {

void write_rate(JsonWriter& out, std::string_view name, double ms, std::size_t tokens) {
  const double each = tokens == 0 ? 0 : ms / static_cast<double>(tokens);
  out.key(std::string(name) + "_per_token_ms").tenth(each);
  out.key(std::string(name) + "_per_second").tenth(each == 0 ? 0 : 1000 / each);
}

void write_timings(JsonWriter& out, const AnswerUsage& usage, const AnswerTimings& timings) {
  const std::size_t computed = usage.prompt - std::min(usage.prompt, usage.cached);
  out.key("timings").begin_object().member("cache_n", usage.cached).member("prompt_n", computed);
  out.key("prompt_ms").tenth(timings.prompt_ms);
  write_rate(out, "prompt", timings.prompt_ms, computed);
  out.member("predicted_n", usage.generated).key("predicted_ms").tenth(timings.predicted_ms);
  write_rate(out, "predicted", timings.predicted_ms, std::max<std::size_t>(usage.generated, 2) - 1);
  out.end_object();
}

void write_token(JsonWriter& out, tokenizer::TokenId id, double logprob, const Served& served) {
  const std::string bytes = served.bytes_of(id);
  out.member("token", bytes).member("logprob", logprob).key("bytes").begin_array();
  for (const char byte : bytes) out.natural(static_cast<unsigned char>(byte));
  out.end_array();
}

}  // namespace

void AnswerTotals::add(const Finish& finish, bool new_prompt) {
  if (new_prompt) {
    usage_.prompt += finish.usage.prompt;
    usage_.cached += finish.usage.cached;
  }
  usage_.generated += finish.usage.generated;
  usage_.reasoning += finish.usage.reasoning;
  usage_.accesses += finish.usage.accesses;
  usage_.hits += finish.usage.hits;
  usage_.misses += finish.usage.misses;
  usage_.bytes_read += finish.usage.bytes_read;
  usage_.batch_mean = std::max(usage_.batch_mean, finish.usage.batch_mean);
  timings_.queue_ms = std::max(timings_.queue_ms, finish.timings.queue_ms);
  timings_.prompt_ms = std::max(timings_.prompt_ms, finish.timings.prompt_ms);
  timings_.predicted_ms = std::max(timings_.predicted_ms, finish.timings.predicted_ms);
  timings_.stalled_ms = std::max(timings_.stalled_ms, finish.timings.stalled_ms);
}

void write_usage(JsonWriter& out, const AnswerUsage& usage) {
  out.begin_object().member("prompt_tokens", usage.prompt).member("completion_tokens", usage.generated);
  out.member("total_tokens", usage.prompt + usage.generated);
  out.key("prompt_tokens_details").begin_object().member("cached_tokens", usage.cached).end_object();
  out.key("completion_tokens_details")
      .begin_object()
      .member("reasoning_tokens", usage.reasoning)
      .end_object();
  out.end_object();
}

void RunningTimings::take(const AnswerEvent& event) {
  if (const auto* admitted = std::get_if<Admitted>(&event.body)) {
    usage_.prompt = admitted->prompt;
    usage_.cached = admitted->cached;
    admitted_ = event.published;
  }
  if (event.generated == usage_.generated) return;
  usage_.generated = event.generated;
  last_ = event.published;
  if (!first_) first_ = last_;
}

void RunningTimings::write(JsonWriter& out) const {
  const auto ms = [](const std::optional<Time>& from, const std::optional<Time>& to) {
    return from && to ? std::chrono::duration<double, std::milli>(*to - *from).count() : 0.0;
  };
  write_timings(out, usage_, {.prompt_ms = ms(admitted_, first_), .predicted_ms = ms(first_, last_)});
}

void write_extras(JsonWriter& out, const AnswerUsage& usage, const AnswerTimings& timings,
                  const Served& served) {
  write_timings(out, usage, timings);
  out.key("sluice").begin_object();
  out.key("queue_ms").tenth(timings.queue_ms).key("stalled_ms").tenth(timings.stalled_ms);
  out.key("batch_mean").tenth(usage.batch_mean);
  out.member("accesses", usage.accesses).member("hits", usage.hits).member("misses", usage.misses);
  out.member("bytes_read", usage.bytes_read);
  if (served.lossy) out.raw_member("lossy", *served.lossy);
  out.end_object();
}

std::string token_logprobs(const std::vector<ScoredToken>& tokens, const Served& served) {
  JsonWriter out;
  out.begin_array();
  for (const ScoredToken& token : tokens) {
    out.begin_object();
    write_token(out, token.id, token.logprob, served);
    out.key("top_logprobs").begin_array();
    const auto write_ranked = [&](tokenizer::TokenId id, double logprob) {
      out.begin_object();
      write_token(out, id, logprob, served);
      out.end_object();
    };
    for (const RankedToken& other : token.top) write_ranked(other.id, other.logprob);
    // The chosen one is among them, whatever its rank.
    const bool there = std::ranges::find(token.top, token.id, &RankedToken::id) != token.top.end();
    if (!token.top.empty() && !there) write_ranked(token.id, token.logprob);
    out.end_array().end_object();
  }
  return out.end_array().take();
}

}  // namespace sluice::serve
