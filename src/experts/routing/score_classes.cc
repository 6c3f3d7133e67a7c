#include "experts/routing/score_classes.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

void ScoreClasses::classify(std::span<const double> scores, std::span<const std::uint8_t> selectable,
                            std::uint32_t k, double alpha) {
  SLUICE_CHECK(selectable.empty() || selectable.size() == scores.size());
  ranking_.clear();
  ranking_.reserve(scores.size());
  for (std::uint32_t e = 0; e < scores.size(); ++e)
    if (selectable.empty() || selectable[e] != 0) ranking_.push_back(e);
  SLUICE_CHECK(k <= ranking_.size());
  k_ = k;
  const std::size_t sorted = std::min<std::size_t>(k_ + 1, ranking_.size());
  std::ranges::partial_sort(ranking_, ranking_.begin() + static_cast<std::ptrdiff_t>(sorted),
                            [&](std::uint32_t a, std::uint32_t b) {
                              return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                            });
  beta_ = ranking_.size() > k_ ? scores[ranking_[k_]] : 0;
  const double least_top = (1 + alpha) * beta_;
  top_ = static_cast<std::size_t>(
      std::ranges::count_if(chosen(), [&](std::uint32_t e) { return scores[e] > least_top; }));
}

}  // namespace sluice::experts
