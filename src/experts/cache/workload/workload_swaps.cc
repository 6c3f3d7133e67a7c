#include "experts/cache/workload/workload_swaps.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

std::span<const Swap> WorkloadSwaps::choose(std::span<const double> score,
                                            std::span<const std::uint8_t> resident, const SwapRule& rule) {
  SLUICE_CHECK(score.size() == resident.size());
  in_.clear();
  in_.reserve(score.size());  // whatever is resident later
  out_.clear();
  out_.reserve(score.size());
  swaps_.clear();
  swaps_.reserve(std::min<std::size_t>(rule.most, score.size()));
  for (std::uint32_t e = 0; e < score.size(); ++e) (resident[e] != 0 ? out_ : in_).push_back(e);
  const std::size_t count = std::min({std::size_t{rule.most}, in_.size(), out_.size()});
  const auto first = static_cast<std::ptrdiff_t>(count);
  std::ranges::partial_sort(in_, in_.begin() + first, [&](std::uint32_t a, std::uint32_t b) {
    return score[a] != score[b] ? score[a] > score[b] : a < b;
  });
  std::ranges::partial_sort(out_, out_.begin() + first, [&](std::uint32_t a, std::uint32_t b) {
    return score[a] != score[b] ? score[a] < score[b] : a > b;
  });
  for (std::size_t i = 0; i < count; ++i) {
    if (!rule.unconditional && !(score[in_[i]] > rule.ratio * score[out_[i]])) break;
    swaps_.push_back({in_[i], out_[i]});
  }
  return swaps_;
}

}  // namespace sluice::experts
