// Base of the caches that judge whole events: nobody asks them expert by expert.
#pragma once

#include <vector>

#include "experts/cache/cache.h"

namespace sluice::experts {

class EventCache : public Cache {
 public:
  void on_step(const StepReport&) final {}
  Parts wanted(ExpertId) const final { return {}; }
  void victims(Bytes, const PinnedView&, std::vector<Eviction>&) final {}
  void on_insert(ExpertId, Parts, Bytes) final {}
  void on_evict(ExpertId, Parts) final {}
  bool decide_event(const StepReport& report, const ExpertSizes& sizes, Bytes capacity,
                    EventDecision& out) override = 0;  // always true
};

}  // namespace sluice::experts
