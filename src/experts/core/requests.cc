#include "experts/core/requests.h"

#include <algorithm>

namespace sluice::experts {

void RequestList::add_event(std::span<const ExpertId> ids) {
  const std::size_t begin = ids_.size();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(begin);
  std::sort(first, ids_.end());
  ids_.erase(std::unique(first, ids_.end()), ids_.end());
  begin_.push_back(ids_.size());
}

std::span<const ExpertId> RequestList::event(std::size_t index) const {
  return std::span(ids_).subspan(begin_[index], begin_[index + 1] - begin_[index]);
}

}  // namespace sluice::experts
