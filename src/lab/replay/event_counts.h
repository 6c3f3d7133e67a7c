// What a replay of caches counts of each event.
#pragma once

#include <cstdint>

#include "experts/cache/residency.h"
#include "lab/replay/replay.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

class EventCounts {
 public:
  // `sizes` may be null: then no bytes are counted. `window` as in ReplaySettings.
  EventCounts(const trace::TraceSizes* sizes, std::uint64_t window);
  // `cache` has just decided `outcome`, of an event that asked for this many experts.
  void add(std::uint64_t step, trace::TracePhase phase, std::uint64_t accesses,
           const experts::EventOutcome& outcome, const experts::Residency& cache);
  // All but the hash.
  const ReplayResult& result() const { return result_; }

 private:
  const trace::TraceSizes* sizes_;
  const std::uint64_t window_;
  ReplayResult result_;
};

}  // namespace sluice::lab
