#include "engine/worlds.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/engine_budget.h"
#include "engine/plan/run_policies.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "fetch/memory/expert_store.h"
#include "kernels/attention/attention.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

Bytes bytes_of(const fetch::ExpertLayout& layout, const experts::Admission& used) {
  if (used.before.has(experts::Part::kFull)) return 0;
  const experts::PartRules& rules = *layout.rules;
  const experts::Parts missing = rules.needed(used.view) - used.before;
  return (rules.in_base(missing) ? layout.base.disk_bytes() : 0) +
         (rules.in_rest(missing) ? layout.rest.disk_bytes() : 0);
}

}  // namespace

void make_room_for_worlds(std::size_t worlds, std::size_t positions, std::size_t shared,
                          EngineOptions& options) {
  constexpr std::size_t kBlock = kernels::kCacheBlock;
  const std::size_t rows = round_up(positions, kBlock);
  options.positions = positions;
  options.sequences = worlds + 1;
  options.kv_tokens = rows + worlds * (rows - shared / kBlock * kBlock);
  options.prefetch = "none";  // a world's prompts and steps are those of no request
}

std::unique_ptr<experts::Worlds> make_worlds(const Engine& engine, std::span<const WorldPlan* const> plans) {
  const model::ModelConfig& config = engine.report().model.config;
  const fetch::ExpertStore& store = engine.report().experts;
  const auto top_k = static_cast<std::uint32_t>(config.moe.top_k);
  const Bytes all = engine.report().model.experts.size() * store.facts().largest_resident;
  std::vector<experts::LayerPolicies> policies;
  for (const WorldPlan* const one : plans) {
    const EnginePlan& plan = one->plan;
    const PolicyPlan& chosen =
        plan.where_all_fits && one->cache >= all ? *plan.where_all_fits : plan.policies;
    SLUICE_CHECK(!plan.device && !chosen.cache->pooled, "a world without a profile and a device");
    experts::LayerPolicies& made = policies.emplace_back(make_policies(chosen, config.moe, store.sizes()));
    made.residencies = make_caches(plan, chosen,
                                   {.bytes = one->cache,
                                    .caches = cache_count(plan, config),
                                    .sparse_layers = config.sparse_layers(),
                                    .top_k = top_k,
                                    .whole_only = !store.facts().split},
                                   std::nullopt, std::nullopt, store.sizes());
    made.costs = store.assumed_costs();
  }
  return std::make_unique<experts::Worlds>(
      std::move(policies), experts::SparseShape{.layers = config.sparse_layers(), .top_k = top_k},
      [&store](const experts::Admission& used) { return bytes_of(store.layout(used.id), used); });
}

}  // namespace sluice::engine
