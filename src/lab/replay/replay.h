// Event-atomic replay of any cache over recorded routing: the decisions that the engine would have made (SPEC
// I6; docs/replay.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experts/cache/zip_pools.h"
#include "experts/core/ids.h"
#include "experts/core/pools.h"
#include "experts/core/requests.h"
#include "experts/named_policy.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

// A trace as caches see it, wholly in memory because oracles must know the future. About ten bytes per
// access.
struct Requests {
  struct Event {
    std::uint64_t step = 0;
    std::uint32_t layer = 0;
    trace::TracePhase phase = trace::TracePhase::kPrefill;
    std::uint32_t tokens = 0;  // tokens of the step
  };
  std::uint32_t experts = 0;          // experts of a layer
  experts::RequestList list;          // all layers, in the order of the trace
  std::vector<Event> events;          // parallel to the list's events
  std::vector<std::uint32_t> tokens;  // parallel to its accesses: tokens that chose the expert
  std::uint64_t steps = 0, prefill_steps = 0, trace_tokens = 0;
  bool cut_off = false;     // the trace's last record was incomplete and is left out
  std::string played = {};  // RoutingTrace::played()
};

// Reads `trace` to its end. Errors as RoutingTrace::next; Error(kInterrupted) when `stop`, which is asked now
// and then, returns true.
Requests read_requests(trace::RoutingTrace& trace, const std::function<bool()>& stop = {});

enum class Scope { kLayer, kGlobal };
enum class CapacityUnit { kExperts, kBytes };

struct ReplaySettings {
  experts::Named<experts::CachePolicy> cache;
  // kLayer: one cache per layer, each with its own events; kGlobal: one cache for all layers.
  Scope scope = Scope::kLayer;
  CapacityUnit unit = CapacityUnit::kExperts;
  std::uint64_t capacity = 0;  // capacity of each cache
  experts::Parts keep = experts::Part::kFull;
  std::uint64_t seed = 0;
  // For zip-pools, which requires them: slots of each layer.
  std::optional<experts::PoolSlots> pools = {};
  experts::PoolRules rules = {};  // for zip-pools
  std::uint64_t window = 0;       // steps of each reported window; 0: no windows
};

struct ReplayCounts {
  std::uint64_t accesses = 0, hits = 0;
  std::uint64_t misses() const { return accesses - hits; }
  double hit_rate() const {
    return accesses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(accesses);
  }
};

struct ReplayWindow {
  std::uint64_t first_step = 0, steps = 0;
  ReplayCounts counts;
};

struct ReplayResult {
  ReplayCounts total, decode;       // an access is one id of an event
  std::uint64_t evictions = 0;      // experts resident before an event and not after it
  std::uint64_t partial = 0;        // misses with some part resident
  std::optional<Bytes> bytes_read;  // missing parts of misses; empty: sizes are unknown
  std::uint64_t decision_hash = 0;  // as RunReport::decision_hash
  std::vector<ReplayWindow> windows;
};

// `sizes` may be null when capacity counts experts. Caches start empty and are kept across sequences. `log`
// gets every event's line (experts/decision_log.h), heading and ending; it may be empty. Error(kUsage) for an
// unknown cache or one for a device, for unknown sizes or parts, and for pools without slots; Error(kBudget)
// for slots that hold more than the capacity.
ReplayResult replay(const Requests& requests, std::uint32_t layers, const trace::TraceSizes* sizes,
                    const ReplaySettings& settings, const std::function<void(std::string_view)>& log = {},
                    const std::function<bool()>& stop = {});

}  // namespace sluice::lab
