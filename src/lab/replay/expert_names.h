// Renames the ids of a line, which may be any numbers, to experts 0, 1, 2 … in the same order: policies see
// only the order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "experts/core/ids.h"

namespace sluice::lab {

constexpr std::int64_t kMostId = std::numeric_limits<std::int64_t>::max();

class ExpertNames {
 public:
  // All ids that will be looked up; repeats count once.
  explicit ExpertNames(std::vector<std::int64_t> ids = {}) : ids_(std::move(ids)) {
    std::ranges::sort(ids_);
    ids_.erase(std::ranges::unique(ids_).begin(), ids_.end());
  }
  experts::ExpertId expert(std::int64_t id) const {
    const auto rank = std::ranges::lower_bound(ids_, id) - ids_.begin();
    return {static_cast<std::uint16_t>(rank >> 16), static_cast<std::uint16_t>(rank & 0xffff)};
  }
  std::int64_t id(experts::ExpertId expert) const {
    return ids_[std::size_t{expert.layer} << 16 | expert.index];
  }

 private:
  std::vector<std::int64_t> ids_;  // ascending: ids_[n] is the id of the n-th expert
};

}  // namespace sluice::lab
