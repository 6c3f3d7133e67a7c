// What is read off logits. Sums are of doubles, in ascending order of ids.
#pragma once

#include <cstddef>
#include <span>

#include "model/tokenizer.h"

namespace sluice::eval {

// What logits say about the next token. They must outlive it.
class Distribution {
 public:
  explicit Distribution(std::span<const float> logits);        // not of none
  double negative_log_likelihood(model::TokenId token) const;  // −ln softmax(logits)[token]
  std::size_t top() const;                                     // the lowest of the most likely ones

 private:
  friend double divergence(const Distribution& reference, const Distribution& model);
  std::span<const float> logits_;
  double log_sum_;  // ln Σ exp
};

// KL(reference ‖ model) in nats; both of the same vocabulary. Rounding may leave it slightly below 0.
double divergence(const Distribution& reference, const Distribution& model);

// Between the values, as numpy.quantile and llama.cpp's perplexity have it: at (n − 1) q from the first. Not
// of none.
double quantile(std::span<const double> ascending, double q);

}  // namespace sluice::eval
