#include "eval/tasks/choice_batch.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "base/error.h"
#include "base/stop_request.h"
#include "engine/batch/batcher.h"
#include "engine/engine.h"
#include "engine/session/logprobs.h"

namespace sluice::eval {
namespace {

// Sums what the model says of one answer's tokens. The last of them is not fed: it is what comes next.
class AnswerSum final : public engine::BatchClient {
 public:
  AnswerSum(const ChoiceRequest& request, const std::function<bool()>& go_on)
      : request_(request), go_on_(go_on) {}

  bool wants_to_stop() override { return stopped_; }
  void on_prompt_token(const engine::BatchToken& token) override { add(token.logprob); }
  void on_logits(std::span<const float> logits) override {
    std::vector<engine::TokenLogprob> none;
    add(engine::token_logprob(logits, request_.tokens.back(), 0, none));
  }
  bool on_token(const engine::BatchToken&) override { return false; }
  void on_end(const engine::BatchEnd& end) override { error_ = end.error; }

  double finish() const {
    if (stopped_) throw interrupted_error();
    if (error_) throw *error_;
    return sum_;
  }

 private:
  void add(double logprob) {
    stopped_ |= go_on_ && !go_on_();
    sum_ += logprob;
  }

  const ChoiceRequest& request_;
  const std::function<bool()>& go_on_;
  double sum_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;
};

engine::BatchRequest batched(const ChoiceRequest& request) {
  engine::BatchRequest batched;
  batched.prompt.assign(request.tokens.begin(), request.tokens.end() - 1);
  batched.ignore_eos = true;
  batched.logprobs = 0;
  batched.prompt_logprobs = request.scored;
  return batched;
}

}  // namespace

std::vector<double> batched_log_likelihoods(engine::Engine& engine, std::span<const ChoiceRequest> requests,
                                            const std::function<bool()>& go_on) {
  std::deque<AnswerSum> answers;
  engine::Batcher batcher(
      engine,
      {.parallel = std::min(requests.size(), engine.plan().sequences), .prompts_first = true, .stretch = 1});
  for (const ChoiceRequest& request : requests)
    batcher.submit(batched(request), answers.emplace_back(request, go_on));
  while (batcher.advance()) {
  }
  std::vector<double> sums;
  for (const AnswerSum& answer : answers) sums.push_back(answer.finish());
  return sums;
}

}  // namespace sluice::eval
