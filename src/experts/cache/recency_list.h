// Experts from the least to the most recently used. Every operation is O(1); nothing is allocated once every
// expert has been seen.
#pragma once

#include <cstddef>
#include <vector>

#include "experts/core/expert_table.h"
#include "experts/core/ids.h"

namespace sluice::experts {

// Thread-compatible.
class RecencyList {
 public:
  bool has(ExpertId id) const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  ExpertId least_recent() const { return first_; }  // REQUIRES: !empty()
  void push_most_recent(ExpertId id);               // REQUIRES: !has(id)
  void remove(ExpertId id);                         // REQUIRES: has(id)
  std::vector<ExpertId> order() const;              // least recently used first
  void clear();

 private:
  struct Link {
    ExpertId before, after;
    bool linked = false;
  };
  Link& link(ExpertId id) { return *links_.find(id); }

  ExpertTable<Link> links_;
  ExpertId first_, last_;  // meaningless while empty
  std::size_t size_ = 0;
};

}  // namespace sluice::experts
