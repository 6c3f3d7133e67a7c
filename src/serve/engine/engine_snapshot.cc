#include "serve/engine/engine_snapshot.h"

#include "engine/draft/drafting.h"
#include "engine/engine_device.h"
#include "engine/session/prefix_cache.h"
#include "fetch/memory/expert_store.h"

namespace sluice::serve {

EngineSnapshot take_snapshot(engine::Engine& engine, const engine::BatchLoad& load,
                             const ExpertWatch& watch) {
  const engine::RunReport run = engine.report();
  EngineSnapshot now;
  now.at = std::chrono::steady_clock::now();
  now.load = load;
  now.kv = run.prefixes.use();
  now.statistics = run.statistics;
  now.drafts = run.drafting.counts();
  now.disk = run.disk();
  now.fetched = run.experts.counters();
  now.layers = watch.counts();
  now.demand = watch.demand();
  if (run.device == nullptr) return now;
  DeviceSnapshot& device = now.device.emplace();
  using enum device::Traffic;
  for (const device::Traffic traffic : {kDemand, kResult, kPrefetch, kUpdate})
    device.link[static_cast<std::size_t>(traffic)] = run.device->link_bytes(traffic);
  device.link_busy_s = run.device->link_busy_s();
  device.computed_s = run.device->computed().busy_s;
  return now;
}

}  // namespace sluice::serve
