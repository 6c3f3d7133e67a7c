// A whole list of events, known beforehand: an oracle policy needs it, and a trace replay walks it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/core/ids.h"

namespace sluice::experts {

class RequestList {
 public:
  // Appends one event. Ids are a set: any order, repeats count once.
  void add_event(std::span<const ExpertId> ids);
  std::size_t events() const { return begin_.size() - 1; }
  std::size_t accesses() const { return ids_.size(); }
  // The ids of one event, ascending and distinct. Valid until the next add_event.
  std::span<const ExpertId> event(std::size_t index) const;
  // Index of the first access of event `index` among all accesses.
  std::size_t begin(std::size_t index) const { return begin_[index]; }

 private:
  std::vector<ExpertId> ids_;
  std::vector<std::size_t> begin_ = {0};  // (events + 1)
};

}  // namespace sluice::experts
