// How well a model chooses among answers, by their log-likelihoods.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "eval/feed.h"
#include "eval/tasks/choice_item.h"
#include "eval/tasks/choice_request.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::eval {

// The score of one item, by choice.
struct ChoiceScore {
  std::vector<double> log_likelihoods;  // ln of the probability of the whole answer
  std::vector<std::size_t> tokens;      // tokens of the answer
};

Json to_json(const ChoiceScore& score);
ChoiceScore choice_score_from_json(const Json& json,
                                   const std::string& name);  // Error(kInvalid) naming `name`

// Scores items one after the other; the common front of an item's choices goes through the model once. What
// goes in chunks is asked of a Batcher (choice_batch.h), which computes as many choices together as the
// engine has sequences; what goes in steps is fed by hand. The engine must outlive it and have positions for
// the longest request. Thread-compatible.
class ChoiceScorer {
 public:
  ChoiceScorer(engine::Engine& engine, std::size_t prompt = kAllOfIt);
  ~ChoiceScorer();
  // Calls `go_on` at every scored position: Error(kInterrupted) when it returns false.
  ChoiceScore score(std::span<const ChoiceRequest> requests, const std::function<bool()>& go_on);

 private:
  double log_likelihood(const ChoiceRequest& request, const std::function<bool()>& go_on);

  engine::Engine& engine_;
  std::size_t prompt_;
  std::unique_ptr<engine::Sequence> sequence_;
  std::vector<tokenizer::TokenId> fed_;  // tokens that the sequence holds
};

// A mean of zeros and ones, and its standard error: the sample's deviation / √n; none for fewer than two.
struct Share {
  double mean = 0;
  std::optional<double> error;
};

// Metrics of lm-evaluation-harness: the share of items whose right answer has the highest log-likelihood; the
// same after division by the answer's length in characters (its acc_norm), and in bytes (its acc_bytes).
// Ties: the first answer wins.
struct ChoiceMetrics {
  Share acc, acc_norm, acc_bytes;
};
ChoiceMetrics choice_metrics(std::span<const ChoiceItem> items, std::span<const ChoiceScore> scores);

}  // namespace sluice::eval
