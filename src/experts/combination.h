// Which policies go together: the matrix of SPEC §5.3, as far as it is built.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "experts/cache_policies.h"
#include "experts/miss_constraint.h"
#include "experts/precision.h"

namespace sluice::experts {

// The parts that a packed model's experts are stored in (SPEC §5.1).
enum class Family : std::uint8_t {
  kRaw,     // full
  kSplit,   // sm + exp
  kSliced,  // msb + lsb
};

struct Combination {
  Family family = Family::kRaw;
  std::span<const std::string_view> routers = {};  // all that are asked for
  std::string_view cache = {};
  PrecisionMode precision = PrecisionMode::kFull;
  ConstraintMode constraint = ConstraintMode::kNone;
  // Not looked at where nothing is said.
  std::string_view scheduler = {}, prefetch = {};
  bool whole_layers = false;             // Preset::whole_layers
  const SlicesConfig* slices = nullptr;  // of slice-lru
  bool loss_limited = false;             // by a LossGuard
};

// Error(kUsage) with the reason and what to do instead, also for unknown names.
void check_combination(const Combination& combination);

}  // namespace sluice::experts
