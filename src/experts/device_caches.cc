#include "experts/device_caches.h"

#include "experts/core/equal_sizes.h"
#include "experts/registry.h"

namespace sluice::experts {

bool takes_experts(const PlacementPolicy& placement, const PlacementPolicy* in_prompts, Tiers tiers) {
  return placement.needs_device || (in_prompts != nullptr && in_prompts->needs_device) ||
         tiers == Tiers::kExclusive;
}

std::vector<std::unique_ptr<Residency>> make_device_caches(const DeviceCaches& setting) {
  static const EqualSizes kOneSlotEach{{.full = 1}};
  const std::uint32_t caches = find_cache(setting.cache).whole_layers ? 1 : setting.layers;
  const std::uint32_t layers = setting.layers / caches;
  std::vector<std::unique_ptr<Residency>> made;
  for (std::uint32_t i = 0; i < caches; ++i) {
    CacheConfig config{.seed = setting.seed};
    config.layers = {i, layers, setting.experts};
    config.workload = setting.workload;
    config.workload.top_k = setting.top_k;
    made.push_back(std::make_unique<Residency>(make_cache(setting.cache, config), kOneSlotEach,
                                               Bytes{setting.slots} * layers, Tier::kDevice));
  }
  return made;
}

}  // namespace sluice::experts
