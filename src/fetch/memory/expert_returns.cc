#include "fetch/memory/expert_returns.h"

#include <algorithm>

namespace sluice::fetch {

using experts::ExpertId;
using experts::Part;
using experts::Placed;

bool ExpertReturns::expects(ExpertId id) const {
  return std::ranges::find(expected_, id, &Placed::id) != expected_.end();
}

std::optional<ReturnPlace> ExpertReturns::begin(ExpertId id, bool in_regions) {
  const auto expected = std::ranges::find(expected_, id, &Placed::id);
  if (expected == expected_.end()) return std::nullopt;
  ExpertInMemory& expert = experts_[id];
  const bool is_free = expert.is_in(ExpertStage::kResting) && expert.held.empty();
  if (!is_free || expected->parts.has(Part::kFull) == in_regions) {
    expected_.erase(expected);  // it is here, or on its way from disk; or it is kept in another form
    return std::nullopt;
  }
  if (!buffers_.take_return(expert, expected->parts)) return std::nullopt;
  expected_.erase(expected);
  expert.enter(ExpertStage::kReturning);
  return ReturnPlace{in_regions ? expert.base.span() : expert.full.span(), expert.rest.span()};
}

void ExpertReturns::end(ExpertId id, bool complete) {
  ExpertInMemory& expert = experts_[id];
  expert.enter(ExpertStage::kResting);
  buffers_.return_ended(expert, complete);
}

}  // namespace sluice::fetch
