// Reads results off logits. Sums are of doubles, in ascending order of ids.
#pragma once

#include <cstddef>
#include <span>

#include "tokenizer/tokenizer.h"

namespace sluice::eval {

// The distribution of the next token. The logits must outlive it.
class Distribution {
 public:
  explicit Distribution(std::span<const float> logits);            // at least one logit
  double negative_log_likelihood(tokenizer::TokenId token) const;  // −ln softmax(logits)[token]
  std::size_t top() const;  // the most likely token; ties: the lowest id

 private:
  friend double divergence(const Distribution& reference, const Distribution& model);
  std::span<const float> logits_;
  double log_sum_;  // ln Σ exp
};

// KL(reference ‖ model) in nats; both must have the same vocabulary. Rounding may leave it slightly below 0.
double divergence(const Distribution& reference, const Distribution& model);

// Interpolates between values like numpy.quantile and llama.cpp's perplexity: at (n − 1) q from the first.
// REQUIRES: at least one value.
double quantile(std::span<const double> ascending, double q);

}  // namespace sluice::eval
