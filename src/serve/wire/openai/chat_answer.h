// Answers of chat completions: chunks of a stream, or one object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/wire/answer_format.h"
#include "serve/wire/openai/answer_numbers.h"
#include "serve/wire/whole_answer.h"

namespace sluice::serve {

// What all chunks of an answer have in common.
struct AnswerHead {
  std::string id, model;
  std::int64_t created = 0;  // seconds since 1970
};

struct ChatAnswerOptions {
  std::size_t n = 1;
  bool stream = false, include_usage = false, progress = false, logprobs = false;
  bool timings = false;    // in each chunk of text
  bool functions = false;  // a call is a `function_call`, as the request's API had it before tools
};

class ChatAnswer final : public AnswerFormat {
 public:
  ChatAnswer(AnswerHead head, const ChatAnswerOptions& options, std::shared_ptr<const Served> served);

  bool streams() const override { return options_.stream; }
  void begin(const Waiting& waiting, std::string& out) override;
  void give(const AnswerEvent& event, std::string& out) override;
  void fail(const ApiError& error, std::string& out) override;
  void end(std::string& out) override;
  std::string whole() override;

 private:
  struct Choice {
    WholeAnswer answer;                // for a stream the end alone
    std::vector<ScoredToken> waiting;  // whose text has not come yet
    RunningTimings timings;
  };

  JsonWriter head_json(std::string_view object) const;
  // One chunk with one choice; `delta` and `logprobs` are JSON.
  void chunk(std::size_t index, std::string_view delta, std::string_view logprobs, const Finish* finish,
             std::string& out) const;
  std::string_view ending(FinishReason reason) const;
  void stream(const AnswerEvent& event, std::string& out);
  void give_text(std::size_t index, const TextDelta& delta, std::string& out);
  std::string logprobs_json(const std::vector<ScoredToken>& tokens) const;
  void write_calls(JsonWriter& out, const WholeAnswer& answer) const;
  void write_choice(JsonWriter& out, std::size_t index) const;

  const AnswerHead head_;
  const ChatAnswerOptions options_;
  const std::shared_ptr<const Served> served_;
  std::vector<Choice> choices_;
  AnswerTotals totals_;
  bool role_given_ = false;  // the first chunks are written
};

}  // namespace sluice::serve
