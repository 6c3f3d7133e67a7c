// The policies of a run or of a replay, chosen: rows of the registry, and what they are made with. All who
// decide layers make their policies here, and say only what differs between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/device_caches.h"
#include "experts/layer_policies.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "experts/routing/loss_guard.h"
#include "experts/routing/router_config.h"

namespace sluice::experts {

// The host's caches, made alike: one for all layers, or one for each.
struct HostCaches {
  const CachePolicy& cache;
  CacheConfig config = {};
  std::size_t count = 1;
  Bytes capacity = 0;  // each one's
};
// `sizes` must outlive the caches. Error(kUsage).
std::vector<std::unique_ptr<Residency>> make_host_caches(const HostCaches& caches, const ExpertSizes& sizes);

// A device beside the host. Null: as in DevicePolicies.
struct DevicePolicyChoice {
  // False (see takes_experts()): its caches are `none`, and nothing is copied ahead, whatever is chosen here.
  bool takes = true;
  DeviceCaches caches;
  std::optional<DeviceSlices> slices = {};
  std::uint32_t buffers = kAnyBuffers;
  const PlacementPolicy* prefill_placement = nullptr;
  std::uint32_t prefill_from = 1;
  const PrefetchPolicy* prefetch = nullptr;
  PrefetchConfig prefetch_config = {};
  std::uint32_t prefetch_size = kAnyRequests;
  bool guards_prefetch = false;
  Tiers tiers = Tiers::kInclusive;
  bool host_may_lack = false;
};
DevicePolicies make_device_policies(const DevicePolicyChoice& choice);  // Error(kUsage)

// Null: as in LayerPolicies.
struct PolicyChoice {
  PrecisionRule precision{.mode = PrecisionMode::kFull};
  std::optional<LossContract> contract = {};    // empty: no limit on the loss
  std::optional<ConstraintConfig> limits = {};  // empty: misses are neither accounted nor limited
  const RouterPolicy* router = nullptr;
  RouterConfig router_config = {};  // without constraint and guard, which follow from the above
  const PlacementPolicy* placement = nullptr;
  std::optional<HostCaches> host = {};  // empty: made later, when the memory is known
  std::optional<DevicePolicyChoice> device = {};
  const SchedulerPolicy* scheduler = nullptr;
  ExpertCosts costs = {};
  const PrefetchPolicy* prefetch = nullptr;
  PrefetchConfig prefetch_config = {};
  bool whole_layers = false;
};
// `sizes` must outlive the policies. Error(kUsage), (kUnsupported) for policies that do not go with the
// model.
LayerPolicies make_policies(const PolicyChoice& choice, const ExpertSizes& sizes);

}  // namespace sluice::experts
