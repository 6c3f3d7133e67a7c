// Sets of policies for a host alone, each under one name: what runs where nobody chooses, ZipMoE with its
// baselines, SliceMoE. Those with a device beside the host are in device_presets.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "experts/named_policy.h"
#include "experts/routing/constraint_config.h"
#include "experts/routing/precision.h"

namespace sluice::experts {

// How zip-pools gets its slots: no slots, from the planner, or equal shares of the memory (SPEC §1.9, §1.10).
enum class PoolSharing : std::uint8_t { kNone, kPlanned, kEqual };

// A set of policies under one name.
struct Preset {
  std::string_view name;
  Named<RouterPolicy> router;
  Named<CachePolicy> cache;
  Named<PrefetchPolicy> prefetch;
  Named<SchedulerPolicy> scheduler;
  Named<PlacementPolicy> placement;
  PoolSharing sharing = PoolSharing::kNone;
  std::string_view source = {};  // paper and section
  bool whole_layers = false;     // fetches all experts of a layer, whatever the routing
  bool synchronous = false;      // one expert at a time: first read, then computed
  bool usual = false;            // what there is where nobody names a preset
  // Knows no compressed experts: reads a model that is stored whole, if there is one.
  bool whole_experts = false;
  // For models in slices: a precision other than kFull, and how misses are limited.
  PrecisionMode precision = PrecisionMode::kFull;
  ConstraintMode constraint = ConstraintMode::kNone;
  bool sliced() const { return precision != PrecisionMode::kFull; }
};

std::span<const Preset> presets();
const Preset& usual_preset();
// The cache of models in slices where nobody chooses one: where both slices are always wanted, nothing is
// gained by keeping one without the other.
const CachePolicy& usual_slice_cache(PrecisionMode precision);
const Preset& find_preset(std::string_view name);  // Error(kUsage) that lists the known names

}  // namespace sluice::experts
