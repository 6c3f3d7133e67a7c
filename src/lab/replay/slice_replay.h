// Event-atomic replay of slice-lru over a recorded run of a model in slices: the decisions that the engine
// made (SPEC I6; docs/replay.md). Takes the routing from the trace, whatever router made it, or has smoe
// choose anew.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "experts/decision_log.h"
#include "experts/routing/miss_account.h"
#include "lab/replay/replay.h"
#include "lab/replay/routed_replay.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

struct SliceReplaySettings {
  Scope scope = Scope::kGlobal;
  Bytes capacity = 0;  // capacity of each cache
  std::uint64_t seed = 0;
  experts::SliceSetting slices = {};
  ReplayRouter router = {};
};

struct SliceReplayResult {
  ReplayCounts total, decode;
  Bytes bytes_read = 0;          // bytes of missing slices
  experts::MissAccount slices;   // over all decode steps
  experts::MissAccount account;  // over the steps that the limit counts
  ReplayRouting routing = {};
  std::uint64_t decision_hash = 0;  // as RunReport::decision_hash
  bool cut_off = false;             // the trace's last record was incomplete
  std::string played = {};          // RoutingTrace::played()
};

// Reads `trace` to its end. `log` as in replay(). Error(kUsage) for a trace of whole experts or without
// logits, and for more critical experts than a token has; otherwise errors as RoutingTrace::next;
// Error(kInterrupted) when `stop` returns true.
SliceReplayResult replay_slices(trace::RoutingTrace& trace, const SliceReplaySettings& settings,
                                const std::function<void(std::string_view)>& log = {},
                                const std::function<bool()>& stop = {});

}  // namespace sluice::lab
