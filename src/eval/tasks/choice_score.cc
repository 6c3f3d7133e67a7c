#include "eval/tasks/choice_score.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/stop_request.h"
#include "engine/engine.h"
#include "engine/session/logprobs.h"
#include "engine/session/sequence.h"
#include "eval/tasks/choice_batch.h"
#include "eval/tasks/python_text.h"

namespace sluice::eval {

Json to_json(const ChoiceScore& score) {
  return {{"log_likelihoods", score.log_likelihoods}, {"tokens", score.tokens}};
}

ChoiceScore choice_score_from_json(const Json& json, const std::string& name) {
  const JsonObject object(json, name);
  const auto list = [&](const char* key) -> const Json& {
    const Json* const values = object.find(key);
    if (values == nullptr || !values->is_array()) object.fail(key, "a list of numbers");
    for (const Json& value : *values)
      if (!value.is_number()) object.fail(key, "a list of numbers");
    return *values;
  };
  ChoiceScore score;
  score.log_likelihoods = list("log_likelihoods").get<std::vector<double>>();
  score.tokens = list("tokens").get<std::vector<std::size_t>>();
  if (score.tokens.size() != score.log_likelihoods.size())
    object.fail("tokens", "one for each log-likelihood");
  return score;
}

ChoiceScorer::ChoiceScorer(engine::Engine& engine, std::size_t prompt)
    : engine_(engine), prompt_(prompt), sequence_(prompt == kAllOfIt ? nullptr : engine.new_sequence()) {}

ChoiceScorer::~ChoiceScorer() = default;

double ChoiceScorer::log_likelihood(const ChoiceRequest& request, const std::function<bool()>& go_on) {
  const std::span<const tokenizer::TokenId> fed = std::span(request.tokens).first(request.fed());
  // The sequence goes back to where the requests part; the token before the answer is fed again for its
  // logits.
  const auto [here, there] = std::mismatch(fed.begin(), fed.end(), fed_.begin(), fed_.end());
  const std::size_t kept = std::min(static_cast<std::size_t>(here - fed.begin()), request.scored - 1);
  fed_.clear();  // after a failed step the sequence's content is unknown
  sequence_->cut(kept);
  double sum = 0;
  std::vector<engine::TokenLogprob> none;
  feed(engine_, *sequence_, fed.subspan(kept), prompt_,
       {[&](std::size_t t) { return kept + t + 1 >= request.scored; },
        [&](std::size_t t, std::span<const float> logits) {
          if (go_on && !go_on()) throw interrupted_error();
          sum += engine::token_logprob(logits, request.tokens[kept + t + 1], 0, none);
        }});
  fed_.assign(fed.begin(), fed.end());
  return sum;
}

ChoiceScore ChoiceScorer::score(std::span<const ChoiceRequest> requests, const std::function<bool()>& go_on) {
  ChoiceScore score;
  for (const ChoiceRequest& request : requests)
    score.tokens.push_back(request.tokens.size() - request.scored);
  if (prompt_ == kAllOfIt) {
    score.log_likelihoods = batched_log_likelihoods(engine_, requests, go_on);
    return score;
  }
  // An item's result must not depend on the item before it, so that an evaluation can resume anywhere.
  fed_.clear();
  for (const ChoiceRequest& request : requests)
    score.log_likelihoods.push_back(log_likelihood(request, go_on));
  return score;
}

namespace {

std::size_t best(std::span<const double> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

Share share(const std::vector<bool>& right) {
  const double n = static_cast<double>(right.size());
  const double ones = static_cast<double>(std::count(right.begin(), right.end(), true));
  Share result{ones / n, std::nullopt};
  if (right.size() < 2) return result;
  const double squares =
      ones * (1 - result.mean) * (1 - result.mean) + (n - ones) * result.mean * result.mean;
  result.error = std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return result;
}

}  // namespace

ChoiceMetrics choice_metrics(std::span<const ChoiceItem> items, std::span<const ChoiceScore> scores) {
  SLUICE_CHECK(items.size() == scores.size() && !items.empty());
  std::vector<bool> acc, acc_norm, acc_bytes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::vector<double>& plain = scores[i].log_likelihoods;
    std::vector<double> by_length, by_bytes;
    for (std::size_t choice = 0; choice < plain.size(); ++choice) {
      const std::string& text = items[i].choices[choice];
      by_length.push_back(plain[choice] / static_cast<double>(length(text)));
      by_bytes.push_back(plain[choice] / static_cast<double>(text.size()));
    }
    acc.push_back(best(plain) == items[i].answer);
    acc_norm.push_back(best(by_length) == items[i].answer);
    acc_bytes.push_back(best(by_bytes) == items[i].answer);
  }
  return {share(acc), share(acc_norm), share(acc_bytes)};
}

}  // namespace sluice::eval
