// Event-atomic replay of the host's caches over recorded routing with the logits of all experts: for a router
// that looks at what is in memory, and for caches that go by scores. A run with the same settings and without
// a device decides alike (SPEC I6; docs/replay.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "experts/named_policy.h"
#include "experts/routing/routing_changes.h"
#include "experts/routing/smoe_rules.h"
#include "lab/replay/replay.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

// The routers that replays of the host's caches have.
struct ReplayRouter {
  experts::Named<experts::RouterPolicy> router = "exact";  // the recorded choices; or smoe, by these rules:
  experts::SmoeRules smoe = {};
  bool routes() const { return router->lossy; }
};

// What that router has changed.
struct ReplayRouting {
  experts::RoutingChanges all, decode;  // in all steps, and in decode steps
  std::uint64_t recorded_differs = 0;   // DecidedEvents::recorded_differs()
};

struct RoutedReplayResult {
  ReplayResult caches;
  ReplayRouting routing;
};

// Error(kUsage) for another router, for a trace without logits, and for an oracle, since which experts are
// asked for depends on the cache.
void check_replay_router(const ReplayRouter& router, const experts::CachePolicy& cache,
                         const trace::RoutingTrace& trace);

// Reads `trace` to its end. `sizes` as in replay(), and otherwise errors as replay() and
// RoutingTrace::next.
RoutedReplayResult replay_routed(trace::RoutingTrace& trace, const trace::TraceSizes* sizes,
                                 const ReplaySettings& settings, const ReplayRouter& router,
                                 const std::function<void(std::string_view)>& log = {},
                                 const std::function<bool()>& stop = {});

}  // namespace sluice::lab
