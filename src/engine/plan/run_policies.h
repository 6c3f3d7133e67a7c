// Makes the policies that a plan names.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "engine/plan/engine_plan.h"
#include "engine/plan/pool_plan.h"
#include "experts/layer_policies.h"
#include "model/config.h"

namespace sluice::engine {

// All except residencies, which need to know the memory. `sizes` must outlive the policies. Error(kUsage),
// (kUnsupported) for policies that do not go with the model.
experts::LayerPolicies make_policies(const PolicyPlan& plan, const model::MoeConfig& moe,
                                     const experts::ExpertSizes& sizes);

// The memory for experts, and what divides it.
struct CacheRoom {
  Bytes bytes = 0;         // all caches together
  std::size_t caches = 1;  // one for all sparse layers, or one for each
  std::size_t sparse_layers = 0;
  std::uint32_t top_k = 0;  // experts of a token
  bool whole_only = false;  // the model stores no expert in split parts
};

// How pools divide the room; empty for a cache without pools and without a profile.
std::optional<PoolPlan> plan_pools_of(const EnginePlan& plan, const PolicyPlan& policies,
                                      const std::optional<Profile>& profile, Bytes room);
// `pools`: from plan_pools_of(), `profile` then too. `sizes` must outlive the caches. Error(kUsage).
std::vector<std::unique_ptr<experts::Residency>> make_caches(const EnginePlan& plan,
                                                             const PolicyPlan& policies,
                                                             const CacheRoom& room,
                                                             const std::optional<PoolPlan>& pools,
                                                             const std::optional<Profile>& profile,
                                                             const experts::ExpertSizes& sizes);

}  // namespace sluice::engine
