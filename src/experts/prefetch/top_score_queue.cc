#include "experts/prefetch/top_score_queue.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

void TopScoreQueue::predict(const PredictedScores& predicted, double alpha, bool all_of_top_k,
                            std::span<const std::uint8_t> resident) {
  const std::uint32_t n = predicted.experts;
  SLUICE_CHECK(predicted.scores.size() == std::size_t{predicted.tokens} * n && resident.size() == n);
  wanted_.clear();
  wanted_.reserve(std::size_t{predicted.tokens} * predicted.top_k);
  begin_.assign(1, 0);
  best_.assign(n, -1.0);
  for (std::uint32_t t = 0; t < predicted.tokens; ++t) {
    const std::span<const double> scores = predicted.scores.subspan(std::size_t{t} * n, n);
    classes_.classify(scores, {}, predicted.top_k, alpha);
    for (const std::uint32_t e : all_of_top_k ? classes_.chosen() : classes_.top()) {
      wanted_.push_back(e);
      best_[e] = std::max(best_[e], scores[e]);
    }
    std::sort(wanted_.begin() + begin_.back(), wanted_.end());
    begin_.push_back(static_cast<std::uint32_t>(wanted_.size()));
  }
  order_.clear();
  order_.reserve(n);  // whatever is resident later
  for (std::uint32_t e = 0; e < n; ++e)
    if (best_[e] >= 0 && resident[e] == 0) order_.push_back(e);
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    return best_[a] != best_[b] ? best_[a] > best_[b] : a < b;
  });
}

std::span<const std::uint32_t> TopScoreQueue::wanted(std::uint32_t token) const {
  return std::span(wanted_).subspan(begin_[token], begin_[token + 1] - begin_[token]);
}

}  // namespace sluice::experts
