#include "engine/session/logprobs.h"

#include <algorithm>
#include <cmath>

namespace sluice::engine {
namespace {

// The ids of the `count` greatest logits, in order, as the entries of `best`.
void find_best(std::span<const float> logits, std::size_t count, std::vector<TokenLogprob>& best) {
  best.clear();
  best.reserve(std::min(count, logits.size()));
  const auto is_worse = [&](const TokenLogprob& one, float logit) {
    return logits[static_cast<std::size_t>(one.id)] < logit;
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (best.size() == count && (count == 0 || !is_worse(best.back(), logits[i]))) continue;
    if (best.size() == count) best.pop_back();
    const auto at =
        std::ranges::find_if(best, [&](const TokenLogprob& one) { return is_worse(one, logits[i]); });
    best.insert(at, {static_cast<tokenizer::TokenId>(i), 0});
  }
}

}  // namespace

double token_logprob(std::span<const float> logits, tokenizer::TokenId token, std::size_t count,
                     std::vector<TokenLogprob>& best) {
  const double greatest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - greatest);
  const double logarithm = std::log(sum);
  const auto logprob = [&](tokenizer::TokenId id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]) - greatest - logarithm;
  };
  find_best(logits, count, best);
  for (TokenLogprob& one : best) one.logprob = logprob(one.id);
  return logprob(token);
}

}  // namespace sluice::engine
