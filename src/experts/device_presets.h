// Sets of policies for a host and a device side by side, each under one name: DALI, SMoE, what they are
// compared with, and ours. All compute the same, with the model's own routing, except those whose router is
// lossy. SPEC §2.7, §3.7, §6.3 and §10 (G10, G11, G16).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "experts/core/tier.h"
#include "experts/named_policy.h"
#include "experts/presets.h"

namespace sluice::experts {

struct DevicePreset {
  std::string_view name;
  Named<CachePolicy> device_cache;
  Named<PlacementPolicy> placement;
  Named<RouterPolicy> router = "exact";
  Named<PrefetchPolicy> prefetch = "none";        // to the device
  std::uint32_t prefetch_size = 0;                // experts of a layer, at most; 0: usual_prefetch_size()
  Named<PlacementPolicy> prefill_placement = {};  // empty: as `placement`
  std::uint32_t prefill_from = 1;                 // tokens of a prompt from which on that holds
  // DevicePolicies::guards_prefetch; a preset named after a paper prefetches as the paper does.
  bool guards_prefetch = false;
  Admit admit =
      Admit::kIdle;           // where the cache goes by scores; a preset named after SMoE admits as that does
  bool packed_slots = false;  // where the model's experts can be computed with as they are packed
  std::string_view source = {};
};

// How many experts of a layer DALI prefetches: 1 where a layer has 8 or fewer (Mixtral), else 4 (SPEC §3.4).
std::uint32_t usual_prefetch_size(std::uint32_t experts);

// What runs and replays take of a preset, of which a user may name parts otherwise. Null: there is no preset,
// or the user has not named that part.
//
// The same, or what the preset says of its own prefetch: null where the user names another prefetch.
std::uint32_t usual_prefetch_size(const DevicePreset* preset, std::uint32_t experts);
bool guards_prefetch(const DevicePreset* preset);
Admit usual_admit(const DevicePreset* preset);
struct PrefillPlacement {
  const PlacementPolicy* policy = nullptr;  // null: as all other steps
  std::uint32_t from = 1;                   // tokens of a prompt from which on it holds
};
// A placement that is named holds for prompts, too, unless one for these is named beside it.
PrefillPlacement prefill_placement(const DevicePreset* preset, const PlacementPolicy* placement,
                                   const PlacementPolicy* in_prompts);

std::span<const DevicePreset> device_presets();
// Null: there is none of this name.
const DevicePreset* device_preset_named(std::string_view name);
bool is_device_preset(std::string_view name);
const DevicePreset& find_device_preset(std::string_view name);  // Error(kUsage)

// What the host does under a name of either kind: under one of a device as `auto`. Error(kUsage).
const Preset& host_preset(std::string_view name);

}  // namespace sluice::experts
