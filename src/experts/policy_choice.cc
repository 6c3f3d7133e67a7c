#include "experts/policy_choice.h"

namespace sluice::experts {
namespace {

// Null for no row.
template <class Policy, class... Config>
auto made(const Policy* row, const Config&... config) -> decltype(row->make(config...)) {
  return row == nullptr ? nullptr : row->make(config...);
}

}  // namespace

std::vector<std::unique_ptr<Residency>> make_host_caches(const HostCaches& caches, const ExpertSizes& sizes) {
  std::vector<std::unique_ptr<Residency>> all;
  for (std::size_t i = 0; i < caches.count; ++i)
    all.push_back(
        std::make_unique<Residency>(make_cache(caches.cache, caches.config), sizes, caches.capacity));
  return all;
}

DevicePolicies make_device_policies(const DevicePolicyChoice& choice) {
  DeviceCaches caches = choice.caches;
  if (!choice.takes) caches.cache = "none";
  return {.residencies = make_device_caches(caches),
          .slices = choice.slices,
          .buffers = choice.buffers,
          .prefill_placement = made(choice.prefill_placement),
          .prefill_from = choice.prefill_from,
          .prefetch = made(choice.takes ? choice.prefetch : nullptr, choice.prefetch_config),
          .prefetch_size = choice.prefetch_size,
          .guards_prefetch = choice.guards_prefetch,
          .tiers = choice.tiers,
          .left_out = choice.caches.left_out,
          .host_may_lack = choice.host_may_lack};
}

LayerPolicies make_policies(const PolicyChoice& choice, const ExpertSizes& sizes) {
  LayerPolicies policies;
  policies.precision = choice.precision;
  if (choice.contract) policies.guard = std::make_unique<LossGuard>(*choice.contract);
  if (choice.limits)
    policies.constraint = std::make_unique<MissConstraint>(*choice.limits, sizes, policies.guard.get());
  RouterConfig router = choice.router_config;
  router.constraint = policies.constraint.get();
  router.guard = policies.guard.get();
  policies.router = made(choice.router, router);
  policies.placement = made(choice.placement);
  if (choice.host) policies.residencies = make_host_caches(*choice.host, sizes);
  if (choice.device) policies.device = make_device_policies(*choice.device);
  policies.scheduler = made(choice.scheduler);
  policies.costs = choice.costs;
  policies.prefetch = made(choice.prefetch, choice.prefetch_config);
  policies.whole_layers = choice.whole_layers;
  return policies;
}

}  // namespace sluice::experts
