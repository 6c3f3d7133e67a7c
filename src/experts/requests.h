// A whole list of events, known beforehand: what an oracle policy needs, and what a trace replay walks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/ids.h"

namespace sluice::experts {

class RequestList {
 public:
  // Appends one event. Ids are a set: any order, repeats count once.
  void add_event(std::span<const ExpertId> ids);
  std::size_t events() const { return begin_.size() - 1; }
  std::size_t accesses() const { return ids_.size(); }
  // The ids of one event, ascending and distinct. Lasts until the next add_event.
  std::span<const ExpertId> event(std::size_t index) const;
  // Where event `index` starts among all accesses.
  std::size_t begin(std::size_t index) const { return begin_[index]; }

 private:
  std::vector<ExpertId> ids_;
  std::vector<std::size_t> begin_ = {0};  // (events + 1)
};

}  // namespace sluice::experts
