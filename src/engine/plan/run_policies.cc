#include "engine/plan/run_policies.h"

#include "experts/cache/cache_policies.h"
#include "experts/policy_choice.h"

namespace sluice::engine {

experts::LayerPolicies make_policies(const PolicyPlan& plan, const model::MoeConfig& moe,
                                     const experts::ExpertSizes& sizes) {
  const bool sliced = plan.precision.mode != experts::PrecisionMode::kFull;
  const bool accounts = plan.limits.mode != experts::ConstraintMode::kNone || sliced;
  return experts::make_policies(
      {.precision = plan.precision,
       .contract = plan.contract,
       .limits = accounts ? std::optional(plan.limits) : std::nullopt,
       .router = plan.router,
       .router_config = {.select = {moe.top_k, moe.groups, moe.top_groups, moe.capacity},
                         .combine = {moe.renormalise, moe.renormalise_epsilon,
                                     moe.renormalise ? 1.0f : moe.routed_scale},
                         .cache_aware = plan.cache_aware,
                         .smoe = plan.smoe,
                         .script = plan.script.get()},
       .placement = plan.placement,
       .scheduler = plan.scheduler,
       .prefetch = plan.prefetch,
       .prefetch_config = {.alpha = plan.smoe.alpha},
       .whole_layers = plan.preset->whole_layers},
      sizes);
}

std::optional<PoolPlan> plan_pools_of(const EnginePlan& plan, const PolicyPlan& policies,
                                      const std::optional<Profile>& profile, Bytes room) {
  if (!policies.cache->pooled || !profile) return std::nullopt;
  return plan_pools(*profile, {.shares = shares_of(*policies.preset),
                               .memory = room,
                               .sequences = plan.sequences,
                               .ranks = plan.ranks.empty() ? profile->ranks : plan.ranks,
                               .prefetch = *policies.prefetch});
}

std::vector<std::unique_ptr<experts::Residency>> make_caches(const EnginePlan& plan,
                                                             const PolicyPlan& policies,
                                                             const CacheRoom& room,
                                                             const std::optional<PoolPlan>& pools,
                                                             const std::optional<Profile>& profile,
                                                             const experts::ExpertSizes& sizes) {
  experts::CacheConfig config;
  config.keep = policies.kept;
  config.workload.top_k = room.top_k;
  config.seed = plan.seed;
  config.slices = policies.slices;
  const Bytes bytes = room.bytes / room.caches;
  if (pools) {
    const ProfiledModel& model = profile.value().model;
    config.pools.slots = {pools->chosen.slots};
    config.pools.whole_only = room.whole_only;
    config.pools.room = {.layers = static_cast<std::uint32_t>(room.sparse_layers / room.caches),
                         .largest = {.full = model.full, .sm = model.sm, .exp = model.exp},
                         .capacity = bytes};
  }
  return experts::make_host_caches(
      {.cache = *policies.cache, .config = config, .count = room.caches, .capacity = bytes}, sizes);
}

}  // namespace sluice::engine
