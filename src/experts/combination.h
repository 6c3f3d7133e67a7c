// Which policies may be combined: the matrix of SPEC §5.3, as far as it is built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "experts/cache/slice_rules.h"
#include "experts/core/part_rules.h"
#include "experts/core/tier.h"
#include "experts/routing/constraint_config.h"
#include "experts/routing/precision.h"

namespace sluice::experts {

struct Combination {
  Family family = Family::kRaw;
  std::span<const std::string_view> routers = {};  // all routers that are asked for
  std::string_view cache = {};
  PrecisionMode precision = PrecisionMode::kFull;
  ConstraintMode constraint = ConstraintMode::kNone;
  // Empty: not checked.
  std::string_view scheduler = {}, prefetch = {};
  bool whole_layers = false;             // Preset::whole_layers
  const SlicesConfig* slices = nullptr;  // for slice-lru
  bool loss_limited = false;             // a LossGuard limits the loss
  std::string_view placement = {};       // empty: not checked
  std::string_view device_cache = {};    // empty: there is no device
  // kExclusive: only with a device, and with a host's cache that adopts.
  Tiers tiers = Tiers::kInclusive;
  // What prefetches have been told of other text (PrefetchPolicy::needs).
  bool residual = false, transitions = false;
};

// Error(kUsage) with the reason and a remedy, also for unknown names.
void check_combination(const Combination& combination);

}  // namespace sluice::experts
