// What a pass has cost so far, in the stretches of time in which it ran.
#pragma once

#include <chrono>

#include "engine/watch/statistics.h"
#include "fetch/memory/fetch_counters.h"

namespace sluice::fetch {
class ExpertStore;
}

namespace sluice::engine {

// Thread-compatible.
class PassCounts {
 public:
  void start(const fetch::ExpertStore& experts);
  void stop(const fetch::ExpertStore& experts);
  // Adds the sums to the counts of the pass's kind.
  void add_to(ExpertStatistics& count) const;

 private:
  std::chrono::steady_clock::time_point started_;
  fetch::ExpertCounters before_;
  ExpertStatistics sums_;
};

}  // namespace sluice::engine
