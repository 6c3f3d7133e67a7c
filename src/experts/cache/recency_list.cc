#include "experts/cache/recency_list.h"

#include "base/error.h"

namespace sluice::experts {

bool RecencyList::has(ExpertId id) const {
  const Link* link = links_.find(id);
  return link != nullptr && link->linked;
}

void RecencyList::push_most_recent(ExpertId id) {
  Link& added = links_.at(id);
  SLUICE_CHECK(!added.linked);
  added = {.before = last_, .after = {}, .linked = true};
  if (empty()) {
    first_ = id;
  } else {
    link(last_).after = id;
  }
  last_ = id;
  ++size_;
}

void RecencyList::remove(ExpertId id) {
  SLUICE_CHECK(has(id));
  Link& gone = link(id);
  if (id == first_) {
    first_ = gone.after;
  } else {
    link(gone.before).after = gone.after;
  }
  if (id == last_) {
    last_ = gone.before;
  } else {
    link(gone.after).before = gone.before;
  }
  gone.linked = false;
  --size_;
}

std::vector<ExpertId> RecencyList::order() const {
  std::vector<ExpertId> ids;
  ids.reserve(size_);
  for (ExpertId id = first_; ids.size() < size_; id = links_.find(id)->after) ids.push_back(id);
  return ids;
}

void RecencyList::clear() {
  while (!empty()) remove(first_);
}

}  // namespace sluice::experts
