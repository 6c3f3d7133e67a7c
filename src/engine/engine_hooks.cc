#include "engine/engine_hooks.h"

#include "experts/cache/cache_policies.h"
#include "experts/layer_policies.h"
#include "experts/named_policy.h"

namespace sluice::engine {

void SecondUnit::put_policies(const experts::ExpertSizes& sizes, experts::LayerPolicies& policies) const {
  policies.placement = make_placement();
  policies.costs.device = costs;
  experts::DevicePolicies& device = policies.device.emplace();
  if (make_residencies)
    device.residencies = make_residencies(sizes);
  else
    device.residencies.push_back(std::make_unique<experts::Residency>(
        experts::make_cache(*experts::Named<experts::CachePolicy>("none"), {}), sizes, 0,
        experts::Tier::kDevice));
  if (make_prefetch) device.prefetch = make_prefetch();
  device.prefetch_size = prefetch_size;
  device.tiers = tiers;
  if (policies.sliced()) device.slices = experts::device_slices(policies.precision.mode, slot_slices);
  device.host_may_lack = true;
}

}  // namespace sluice::engine
