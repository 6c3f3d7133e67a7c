#include "engine/engine_hooks.h"

#include "experts/layer_policies.h"

namespace sluice::engine {

void SecondUnit::put_policies(const experts::ExpertSizes& sizes, experts::LayerPolicies& policies) const {
  policies.placement = make_placement();
  policies.costs.device = costs;
  if (!make_residencies) return;
  experts::DevicePolicies& device = policies.device.emplace();
  device.residencies = make_residencies(sizes);
  if (make_prefetch) device.prefetch = make_prefetch();
  device.prefetch_size = prefetch_size;
  device.tiers = tiers;
  device.host_may_lack = true;
}

}  // namespace sluice::engine
