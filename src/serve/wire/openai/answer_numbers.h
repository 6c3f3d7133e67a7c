// Usage, times and log-probabilities of an answer as OpenAI's API and llama-server's extensions write them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer_event.h"
#include "serve/backend.h"
#include "serve/json/json_writer.h"

namespace sluice::serve {

// Sums over all sequences of a request. The prompt of several choices counts once; times are the longest.
class AnswerTotals {
 public:
  void add(const Finish& finish, bool new_prompt);
  const AnswerUsage& usage() const { return usage_; }
  const AnswerTimings& timings() const { return timings_; }

 private:
  AnswerUsage usage_{.batch_mean = 0};
  AnswerTimings timings_;
};

// Times of one sequence that is still being answered, from its events.
class RunningTimings {
 public:
  void take(const AnswerEvent& event);
  void write(JsonWriter& out) const;  // the member "timings"

 private:
  using Time = std::chrono::steady_clock::time_point;
  AnswerUsage usage_;
  std::optional<Time> admitted_, first_, last_;  // first and last: of tokens
};

void write_usage(JsonWriter& out, const AnswerUsage& usage);  // the value
// The members "timings" and "sluice".
void write_extras(JsonWriter& out, const AnswerUsage& usage, const AnswerTimings& timings,
                  const Served& served);
// An array of {token, logprob, bytes, top_logprobs}.
std::string token_logprobs(const std::vector<ScoredToken>& tokens, const Served& served);

}  // namespace sluice::serve
