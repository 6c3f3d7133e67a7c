#include "kernels/gpu/dense/combined_sums.h"

#include <algorithm>

namespace sluice::kernels::gpu {

CombinedSums::CombinedSums(std::span<const op::WeightedRow> sums) {
  std::vector<op::WeightedRow> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, {}, &op::WeightedRow::token);
  for (const op::WeightedRow& sum : sorted) {
    const auto at = static_cast<std::uint32_t>(sources_.size());
    if (tokens_.empty() || tokens_.back().token != sum.token) tokens_.push_back({sum.token, at});
    sources_.push_back({sum.row, sum.weight});
  }
  tokens_.push_back({0, static_cast<std::uint32_t>(sources_.size())});
}

}  // namespace sluice::kernels::gpu
