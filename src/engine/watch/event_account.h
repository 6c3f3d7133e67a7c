// Who pays for the experts of a step: an account that is told of each event what it used and read.
#pragma once

#include <cstdint>
#include <span>

#include "engine/session/step.h"
#include "experts/routing/router.h"
#include "fetch/memory/fetch_counters.h"

namespace sluice::engine {

// One sparse layer of one step. Valid during the call.
struct EventCosts {
  const experts::Routing& routing;                   // which experts each token uses
  std::uint64_t accesses = 0, hits = 0, misses = 0;  // as ExpertStatistics
  std::span<const fetch::ExpertRead> reads = {};     // that it needs, of the disk
};

// Follows one step (Step::account), however often that is suspended. Its counts are those of Statistics: also
// what a step has read that fails later. Must not call the engine, and throws nothing.
class EventAccount {
 public:
  virtual ~EventAccount() = default;
  virtual void on_event(const Step& step, const EventCosts& costs) = 0;
};

}  // namespace sluice::engine
