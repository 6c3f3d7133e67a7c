#include "eval/logits.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::eval {

Distribution::Distribution(std::span<const float> logits) : logits_(logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  log_sum_ = most + std::log(sum);
}

double Distribution::negative_log_likelihood(tokenizer::TokenId token) const {
  return log_sum_ - logits_[static_cast<std::size_t>(token)];
}

std::size_t Distribution::top() const {
  return static_cast<std::size_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
}

double divergence(const Distribution& reference, const Distribution& model) {
  SLUICE_CHECK(reference.logits_.size() == model.logits_.size());
  double sum = 0;
  for (std::size_t i = 0; i < reference.logits_.size(); ++i) {
    const double log_p = reference.logits_[i] - reference.log_sum_, p = std::exp(log_p);
    if (p > 0) sum += p * (log_p - (model.logits_[i] - model.log_sum_));
  }
  return sum;
}

double quantile(std::span<const double> ascending, double q) {
  const double place = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double share = place - static_cast<double>(below);
  return ascending[below] * (1 - share) + ascending[above] * share;
}

}  // namespace sluice::eval
