// Which policies may be combined: the matrix of SPEC §5.3, as far as it is built.
#pragma once

#include <cstdint>
#include <span>

#include "experts/cache/slice_rules.h"
#include "experts/core/part_rules.h"
#include "experts/core/tier.h"
#include "experts/named_policy.h"
#include "experts/routing/constraint_config.h"
#include "experts/routing/precision.h"

namespace sluice::experts {

struct Combination {
  Family family = Family::kRaw;
  std::span<const Named<RouterPolicy>> routers = {};  // all routers that are asked for
  Named<CachePolicy> cache = {};
  PrecisionMode precision = PrecisionMode::kFull;
  ConstraintMode constraint = ConstraintMode::kNone;
  // Empty: not checked.
  Named<SchedulerPolicy> scheduler = {};
  Named<PrefetchPolicy> prefetch = {};
  bool whole_layers = false;              // Preset::whole_layers
  const SlicesConfig* slices = nullptr;   // for slice-lru
  bool loss_limited = false;              // a LossGuard limits the loss
  Named<PlacementPolicy> placement = {};  // empty: not checked
  Named<CachePolicy> device_cache = {};   // empty: there is no device
  // kExclusive: only with a device, and with a host's cache that adopts.
  Tiers tiers = Tiers::kInclusive;
  // What prefetches have been told of other text (PrefetchPolicy::needs).
  bool residual = false, transitions = false;
};

// Error(kUsage) with the reason and a remedy.
void check_combination(const Combination& combination);

}  // namespace sluice::experts
