// What comes of one request while it is answered, in no API's words.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokenizer/text/token_id.h"

namespace sluice::serve {

struct RankedToken {
  tokenizer::TokenId id = 0;
  double logprob = 0;
};

// A token with its log-probability, if the request asks for it.
struct ScoredToken {
  tokenizer::TokenId id = 0;
  double logprob = 0;
  std::vector<RankedToken> top;  // the likeliest, descending
};

// One sequence has left the queue.
struct Admitted {
  std::size_t prompt = 0, cached = 0;  // tokens; cached: of the prompt, found
};

struct PrefillProgress {
  std::size_t done = 0, total = 0;  // tokens of the prompt, cached ones too
  std::size_t cached = 0;
  double time_ms = 0;  // since admission
};

// Tokens of the prompt from the second one on, if the request asks for them.
struct PromptScores {
  std::vector<ScoredToken> tokens;
};

struct TextDelta {
  std::string text;                 // valid UTF-8; may be empty where only tokens come
  std::vector<ScoredToken> tokens;  // whose text it is, if the request asks for log-probabilities
};

struct ReasoningDelta {
  std::string text;
};

struct ToolBegin {
  std::size_t index = 0;  // from 0, ascending
  std::string id, name;
};

struct ToolArguments {
  std::size_t index = 0;
  std::string fragment;  // joined, the fragments are what the model wrote: JSON
};

enum class FinishReason { kStop, kStopString, kLength, kToolCalls };
constexpr std::string_view finish_name(FinishReason reason) {  // as OpenAI's API and the metrics say it
  if (reason == FinishReason::kLength) return "length";
  return reason == FinishReason::kToolCalls ? "tool_calls" : "stop";
}

// Milliseconds of the monotonic clock.
struct AnswerTimings {
  double queue_ms = 0;      // from submission to admission
  double prompt_ms = 0;     // from admission to the publication of the first token
  double predicted_ms = 0;  // from the first published token to the last
  double stalled_ms = 0;    // without room; contained in the two
};

struct AnswerUsage {
  std::size_t prompt = 0, cached = 0;        // tokens
  std::size_t generated = 0, reasoning = 0;  // reasoning: of the generated ones
  double batch_mean = 1;                     // sequences in a pass that fed this one
  std::uint64_t accesses = 0, hits = 0, misses = 0, bytes_read = 0;
  std::uint64_t drafted = 0, drafts_accepted = 0;  // tokens that were computed before they were drawn
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::string stop;  // with kStopString, the string, which is not in the text
  AnswerUsage usage;
  AnswerTimings timings;
};

// The last event, too; the other sequences of the request may go on.
struct Failure {
  enum class Kind { kError, kCancelled, kDraining };
  Kind kind = Kind::kError;
  std::string message;  // without absolute paths
};

using EventBody = std::variant<Admitted, PrefillProgress, PromptScores, TextDelta, ReasoningDelta, ToolBegin,
                               ToolArguments, Finish, Failure>;

struct AnswerEvent {
  std::size_t sequence = 0;  // a sequence of the request
  EventBody body;
  std::chrono::steady_clock::time_point published{};  // set by EventQueue::push
  std::size_t generated = 0;                          // tokens of the sequence so far
};

}  // namespace sluice::serve
