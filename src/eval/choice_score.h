// How well a model chooses among answers, by their log-likelihoods.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "eval/choice_item.h"
#include "eval/choice_request.h"
#include "eval/feed.h"

namespace sluice::eval {

// Of one item, by choice.
struct ChoiceScore {
  std::vector<double> log_likelihoods;  // ln of the probability of the whole answer
  std::vector<std::size_t> tokens;      // of the answer
};

Json to_json(const ChoiceScore& score);
ChoiceScore choice_score_from_json(const Json& json,
                                   const std::string& name);  // Error(kInvalid) naming `name`

// Scores items one after the other; what the choices of an item have in common goes through the model once.
// The engine must outlive it, and have positions for the longest request. Thread-compatible.
class ChoiceScorer {
 public:
  ChoiceScorer(engine::Engine& engine, std::size_t prompt = kAllOfIt);
  // `go_on` is asked at every scored position: Error(kInterrupted) when it says no.
  ChoiceScore score(std::span<const ChoiceRequest> requests, const std::function<bool()>& go_on);

 private:
  double log_likelihood(const ChoiceRequest& request, const std::function<bool()>& go_on);

  engine::Engine& engine_;
  std::size_t prompt_;
  std::unique_ptr<engine::Sequence> sequence_;
  std::vector<model::TokenId> fed_;  // that the sequence holds
};

// A mean of zeros and ones, and its standard error: the sample's deviation / √n; none of fewer than two.
struct Share {
  double mean = 0;
  std::optional<double> error;
};

// Metrics of lm-evaluation-harness: the share of items whose right answer has the highest log-likelihood; the
// same after it is divided by the answer's length in characters (its acc_norm), and in bytes (its acc_bytes).
// Of equal ones the first is taken.
struct ChoiceMetrics {
  Share acc, acc_norm, acc_bytes;
};
ChoiceMetrics choice_metrics(std::span<const ChoiceItem> items, std::span<const ChoiceScore> scores);

}  // namespace sluice::eval
