// The caches of a device, made alike for a run and for its replay. SPEC §3.5, §10 (G11).
//
// They count slots, not bytes: each slot has room for the largest expert, and holds one, however small. So no
// more experts stay than there are slots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/setting.h"
#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/tier.h"
#include "experts/named_policy.h"

namespace sluice::experts {

// Whether experts are brought to a device: some placement computes experts there, or tiers exclude each
// other, so that the device computes what it alone has. `in_prompts`: null where prompts are placed as all
// else.
bool takes_experts(const PlacementPolicy& placement, const PlacementPolicy* in_prompts, Tiers tiers);

// What a user says of them; empty: as usual.
struct WorkloadSetting {
  std::optional<std::uint32_t> steps;  // for the window that the cache has
  std::optional<std::uint32_t> swaps;  // at a time
  std::optional<Admit> admit;
};
// The cache says which of these act on it (CachePolicy::windowed, swaps, learns_idle).
WorkloadConfig workload_config(const WorkloadSetting& setting, Admit usual);

struct DeviceCaches {
  Named<CachePolicy> cache;
  std::uint32_t layers = 0, experts = 0, top_k = 0;  // sparse layers, experts of each, of a token
  std::uint32_t slots = 0;                           // for each layer
  std::uint64_t seed = 0;
  WorkloadConfig workload = {};             // its top_k is set here
  std::vector<std::uint8_t> left_out = {};  // CachedLayers::left_out: layers without slots
};

// One for each layer; for caches that keep whole layers one for all of them, of as many slots. Error(kUsage).
std::vector<std::unique_ptr<Residency>> make_device_caches(const DeviceCaches& setting);

// Why a cache is for a device alone: it begins with experts of its choice and never changes, and the host
// begins empty, in runs and in replays. Empty for a cache that the host can have.
std::string_view why_for_a_device(const CachePolicy& cache);
// For a replay's cache of the host: Error(kUsage) that says which replay has the cache on a device.
void check_host_cache(const CachePolicy& cache);
// For a number of experts of each layer that a user gave: Error(kUsage) where a layer has fewer.
void check_layer_has(std::uint32_t wanted, std::uint32_t experts, Setting setting);

}  // namespace sluice::experts
