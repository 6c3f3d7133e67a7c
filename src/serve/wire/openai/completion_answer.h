// Answers of completions: chunks of a stream, or one object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/wire/openai/chat_answer.h"
#include "serve/wire/openai/completion_body.h"
#include "serve/wire/openai/completion_logprobs.h"

namespace sluice::serve {

class CompletionAnswer final : public AnswerFormat {
 public:
  CompletionAnswer(AnswerHead head, CompletionBody body, std::shared_ptr<const Served> served);

  bool streams() const override { return body_.stream; }
  void begin(const Waiting& waiting, std::string& out) override;
  void give(const AnswerEvent& event, std::string& out) override;
  void fail(const ApiError& error, std::string& out) override;
  void end(std::string& out) override;
  std::string whole() override;

 private:
  struct Choice {
    std::string text;  // not yet sent
    CompletionLogprobs logprobs;
    std::vector<ScoredToken> prompt_tokens;
    bool echoed = false;
    std::optional<Finish> finish;
    std::vector<tokenizer::TokenId> ids;  // ids from a model without a tokenizer, not yet sent
    RunningTimings timings;
  };

  JsonWriter head_json() const;
  const CompletionPrompt& prompt_of(std::size_t index) const { return body_.prompts[index / body_.n]; }
  void echo(std::size_t index);
  void write_choice(JsonWriter& out, std::size_t index, bool last);
  void chunk(std::size_t index, const Finish* finish, std::string& out);

  const AnswerHead head_;
  const CompletionBody body_;
  const std::shared_ptr<const Served> served_;
  std::vector<Choice> choices_;
  AnswerTotals totals_;
};

}  // namespace sluice::serve
