#include "engine/plan/run_policies.h"

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"

namespace sluice::engine {
namespace {

// Null where nothing is limited and nothing is accounted.
std::unique_ptr<experts::MissConstraint> make_constraint(const PolicyPlan& plan,
                                                         const experts::ExpertSizes& sizes,
                                                         const experts::LossGuard* guard) {
  const bool sliced = plan.precision.mode != experts::PrecisionMode::kFull;
  if (plan.limits.mode == experts::ConstraintMode::kNone && !sliced) return nullptr;
  return std::make_unique<experts::MissConstraint>(plan.limits, sizes, guard);
}

}  // namespace

experts::LayerPolicies make_policies(const PolicyPlan& plan, const model::MoeConfig& moe,
                                     const experts::ExpertSizes& sizes) {
  experts::LayerPolicies policies;
  policies.precision = plan.precision;
  if (plan.contract) policies.guard = std::make_unique<experts::LossGuard>(*plan.contract);
  policies.constraint = make_constraint(plan, sizes, policies.guard.get());
  policies.router = plan.router->make(
      {.select = {moe.top_k, moe.groups, moe.top_groups, moe.capacity},
       .combine = {moe.renormalise, moe.renormalise_epsilon, moe.renormalise ? 1.0f : moe.routed_scale},
       .cache_aware = plan.cache_aware,
       .smoe = plan.smoe,
       .constraint = policies.constraint.get(),
       .script = plan.script.get()});
  policies.scheduler = plan.scheduler->make();
  policies.prefetch = plan.prefetch->make({});
  policies.placement = plan.placement->make();
  policies.whole_layers = plan.preset->whole_layers;
  return policies;
}

std::optional<PoolPlan> plan_pools_of(const EnginePlan& plan, const PolicyPlan& policies,
                                      const std::optional<Profile>& profile, Bytes room) {
  if (!policies.cache->pooled || !profile) return std::nullopt;
  const bool equal = policies.preset->sharing == experts::PoolSharing::kEqual;
  return plan_pools(*profile, {.shares = equal ? PoolShares::kEqual : PoolShares::kPlanned,
                               .memory = room,
                               .sequences = plan.sequences,
                               .ranks = plan.ranks.empty() ? profile->ranks : plan.ranks,
                               .prefetch = std::string(policies.prefetch->name)});
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
  std::vector<std::unique_ptr<experts::Residency>> caches;
  for (std::size_t i = 0; i < room.caches; ++i)
    caches.push_back(std::make_unique<experts::Residency>(experts::make_cache(policies.cache->name, config),
                                                          sizes, bytes));
  return caches;
}

}  // namespace sluice::engine
