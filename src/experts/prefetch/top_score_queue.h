// SMoE's prefetch queue: the experts that predicted scores of the next layer make important, and that are not
// on the device. SMoE (arXiv 2508.18983 §5.2); SPEC §2.3. The prediction itself, from the partial state of
// the running layer, is the engine's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/routing/score_classes.h"

namespace sluice::experts {

// Predicted scores of the next layer's router. Non-owning.
struct PredictedScores {
  std::uint32_t tokens = 0, experts = 0;  // T, N
  std::uint32_t top_k = 0;                // at most N
  std::span<const double> scores = {};    // (T, N), at least 0: softmax probabilities
};

// Allocates nothing once it has seen the largest step. Thread-compatible.
class TopScoreQueue {
 public:
  // Replaces the queue. alpha: as the router's (SmoeRules). all_of_top_k: low-score experts are wanted, too.
  // resident: (N).
  void predict(const PredictedScores& predicted, double alpha, bool all_of_top_k,
               std::span<const std::uint8_t> resident);

  // Valid until the next predict(). What to fetch, most important first: by the highest score among the
  // tokens that want the expert, then by id.
  std::span<const std::uint32_t> order() const { return order_; }
  // What a token wants, ascending, whether resident or not.
  std::span<const std::uint32_t> wanted(std::uint32_t token) const;

 private:
  ScoreClasses classes_;
  std::vector<std::uint32_t> wanted_, begin_{0};  // what all tokens want, one after the other; (T + 1)
  std::vector<double> best_;                      // (N): negative where no token wants the expert
  std::vector<std::uint32_t> order_;
};

}  // namespace sluice::experts
