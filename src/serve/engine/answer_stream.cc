#include "serve/engine/answer_stream.h"

#include <algorithm>
#include <utility>

#include "base/json/json.h"
#include "serve/engine/client_message.h"

namespace sluice::serve {
namespace {

constexpr auto kProgressPause = std::chrono::seconds(1);  // between events that nobody has asked for
constexpr std::size_t kPromptScores = 64;                 // scores of one event

double ms(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::vector<std::string> all_stops(const AnswerReading& reading, const TextRequest& request) {
  std::vector<std::string> stops = request.stops;
  // A grammar decides by itself when its text ends, and may hold these texts in a string.
  const bool ends_itself = request.grammar && !request.grammar->has_free_text();
  if (request.parsing && !ends_itself) stops.insert(stops.end(), reading.ends.begin(), reading.ends.end());
  return stops;
}

tokenizer::AnswerParser parser_of(const AnswerReading& reading, const AnswerParsing& parsing,
                                  std::uint64_t seed) {
  tokenizer::AnswerFormat format = reading.format;
  if (!parsing.reasoning) format.reasoning = {};
  tokenizer::AnswerStart start;
  start.prompt = parsing.prompt_tail;
  start.past_calls = parsing.past_calls;
  start.seed = seed;
  start.marks_first = parsing.bound;
  if (parsing.calls)
    for (const ToolSpec& tool : parsing.tools)
      start.tools.push_back(
          {tool.name, tool.parameters.empty() ? Json::object() : parse_json(tool.parameters, "tools")});
  return {format, reading.tokenizer, std::move(start)};
}

}  // namespace

AnswerStream::AnswerStream(const AnswerReading& reading, const TextRequest& request, std::size_t sequence,
                           std::shared_ptr<EventQueue> events, std::uint64_t seed)
    : reading_(reading),
      sequence_(sequence),
      prompt_(request.prompt.size()),
      own_stops_(request.stops),
      scores_(request.logprobs.has_value() || reading.tokenizer == nullptr),
      often_(request.progress),
      one_call_(request.parsing && request.parsing->one_call),
      events_(std::move(events)),
      stops_(all_stops(reading, request)) {
  if (reading.tokenizer == nullptr) return;
  const bool parsed = request.parsing.has_value();
  decoder_.emplace(*reading.tokenizer, parsed ? tokenizer::ShowSpecial::kYes : tokenizer::ShowSpecial::kNo);
  if (parsed) parser_.emplace(parser_of(reading, *request.parsing, seed));
}

AnswerStream::~AnswerStream() = default;

void AnswerStream::push(EventBody body) {
  if (!events_->push({.sequence = sequence_, .body = std::move(body), .generated = generated_})) lost_ = true;
}

void AnswerStream::fail(const Failure& failure) {
  ended_ = true;
  push(failure);
}

void AnswerStream::on_admitted(std::size_t cached) {
  admitted_ = true;
  cached_ = prefilled_ = cached;
  admitted_at_ = told_at_ = Clock::now();
  push(Admitted{prompt_, cached});
}

void AnswerStream::on_prefill(std::size_t done, std::size_t total) {
  prefilled_ = done;
  const Clock::time_point now = Clock::now();
  if (!often_ && now - told_at_ < kProgressPause) return;
  told_at_ = now;
  push(PrefillProgress{.done = done, .total = total, .cached = cached_, .time_ms = ms(now - admitted_at_)});
}

void AnswerStream::on_prompt_token(const engine::BatchToken& token) {
  prompt_scores_.push_back(scored(token));
  if (prompt_scores_.size() == kPromptScores) push(PromptScores{std::exchange(prompt_scores_, {})});
}

bool AnswerStream::on_token(const engine::BatchToken& token) {
  if (!prompt_scores_.empty()) push(PromptScores{std::exchange(prompt_scores_, {})});
  ++generated_;
  if (parser_ && parser_->reasons()) ++reasoning_;
  if (scores_ && !parser_) content_scores_.push_back(scored(token));
  if (token.ends) return true;
  const std::string text = decoder_ ? decoder_->append(token.id) : std::string();
  if (scores_ && parser_) pending_.push_back({scored(token), text.size()});
  read(text, token.id);
  return !stops_.found() && !calls_over_ && !lost_;
}

void AnswerStream::read(std::string_view text, std::optional<tokenizer::TokenId> id) {
  if (!parser_) return give_text(std::string(text));
  for (const tokenizer::AnswerEvent& event : id ? parser_->append(*id, text) : parser_->append(text))
    take(event);
}

void AnswerStream::take(const tokenizer::AnswerEvent& event) {
  using Kind = tokenizer::AnswerEvent::Kind;
  if (calls_over_ || stops_.found()) return;
  if (event.kind == Kind::kContent) {
    score_content(event.text.size());
    return give_text(event.text);
  }
  if (event.kind == Kind::kCallBegin) {
    if (one_call_ && calls_ > 0) {
      calls_over_ = true;
      return;
    }
    if (std::string held = stops_.finish(); !held.empty())
      push(TextDelta{std::move(held), std::exchange(content_scores_, {})});
  }
  pending_.clear();  // marks, and what is no content
  switch (event.kind) {
    case Kind::kReasoning:
      return push(ReasoningDelta{event.text});
    case Kind::kCallBegin:
      ++calls_;
      return push(ToolBegin{event.call, event.id, event.name});
    case Kind::kCallArguments:
      return push(ToolArguments{event.call, event.text});
    default:
      return;
  }
}

void AnswerStream::score_content(std::size_t bytes) {
  auto from = pending_.end();
  for (std::size_t found = 0; from != pending_.begin() && found < bytes;) found += (--from)->bytes;
  for (; from != pending_.end(); ++from) content_scores_.push_back(std::move(from->token));
  pending_.clear();
}

void AnswerStream::give_text(const std::string& text) {
  std::string ready = stops_.append(text);
  // Tokens of a raw answer are told even without a text of their own.
  const bool alone = !parser_ && text.empty() && !content_scores_.empty();
  if (!ready.empty() || alone) push(TextDelta{std::move(ready), std::exchange(content_scores_, {})});
}

void AnswerStream::finish_text() {
  if (decoder_ && !stops_.found() && !calls_over_) {
    read(decoder_->finish(), std::nullopt);
    if (parser_)
      for (const tokenizer::AnswerEvent& event : parser_->finish()) take(event);
    if (!stops_.found())
      if (std::string held = stops_.finish(); !held.empty())
        push(TextDelta{std::move(held), std::exchange(content_scores_, {})});
  }
  if (!content_scores_.empty()) push(TextDelta{{}, std::exchange(content_scores_, {})});
}

void AnswerStream::on_end(const engine::BatchEnd& end) {
  ended_ = true;
  if (end.error) return push(Failure{Failure::Kind::kError, client_message(*end.error)});
  if (lost_ || end.reason == engine::StopReason::kInterrupted)
    return push(Failure{cancelled_as_, "the request was cancelled"});
  if (!prompt_scores_.empty()) push(PromptScores{std::exchange(prompt_scores_, {})});
  finish_text();
  push(finish_of(end));
}

ScoredToken AnswerStream::scored(const engine::BatchToken& token) const {
  ScoredToken scored{token.id, token.logprob, {}};
  for (const engine::TokenLogprob& one : token.top) scored.top.push_back({one.id, one.logprob});
  return scored;
}

Finish AnswerStream::finish_of(const engine::BatchEnd& end) const {
  const engine::RequestStatistics& counted = end.statistics;
  Finish finish;
  if (stops_.found() && stops_.which() < own_stops_.size()) {
    finish.reason = FinishReason::kStopString;
    finish.stop = own_stops_[stops_.which()];
  } else if (calls_ > 0 && end.reason != engine::StopReason::kLength &&
             end.reason != engine::StopReason::kContext) {
    finish.reason = FinishReason::kToolCalls;
  } else if (end.reason == engine::StopReason::kLength || end.reason == engine::StopReason::kContext) {
    finish.reason = stops_.found() ? FinishReason::kStop : FinishReason::kLength;
  }
  finish.usage = {.prompt = counted.prompt,
                  .cached = counted.cached,
                  .generated = counted.generated,
                  .reasoning = reasoning_,
                  .batch_mean = counted.passes == 0 ? 1
                                                    : static_cast<double>(counted.companions) /
                                                          static_cast<double>(counted.passes),
                  .accesses = counted.accesses,
                  .hits = counted.hits,
                  .misses = counted.misses,
                  .bytes_read = static_cast<std::uint64_t>(counted.bytes_read),
                  .drafted = counted.drafts.drafted,
                  .drafts_accepted = counted.drafts.accepted};
  finish.timings = {counted.queue_ms, counted.prompt_ms, counted.generated_ms, counted.stalled_ms};
  return finish;
}

}  // namespace sluice::serve
