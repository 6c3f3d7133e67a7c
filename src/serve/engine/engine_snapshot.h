// What an engine has done up to a moment, copied so that other threads may read it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/batch/batcher.h"
#include "engine/draft/draft_counts.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/session/prefix_cache.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/fetch_counters.h"
#include "serve/engine/expert_watch.h"

namespace sluice::serve {

struct DeviceSnapshot {
  std::array<Bytes, 4> link{};  // demand, result, prefetch, update
  double link_busy_s = 0, computed_s = 0;
};

struct EngineSnapshot {
  std::chrono::steady_clock::time_point at{};
  engine::BatchLoad load;
  engine::KvUse kv;
  engine::Statistics statistics;
  engine::DraftCounts drafts;
  engine::DiskReport disk;
  fetch::ExpertCounters fetched;
  std::array<std::vector<LayerCounts>, 2> layers;  // ExpertWatch::counts()
  std::uint64_t demand = 0;
  std::optional<DeviceSnapshot> device;
};

// On the engine's thread.
EngineSnapshot take_snapshot(engine::Engine& engine, const engine::BatchLoad& load, const ExpertWatch& watch);

}  // namespace sluice::serve
