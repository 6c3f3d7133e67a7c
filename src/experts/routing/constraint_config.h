// How the miss rate of a run is limited (miss_constraint.h). SliceMoE; SPEC §4.4.
#pragma once

#include <cstdint>
#include <string_view>

#include "experts/core/ids.h"

namespace sluice::experts {

enum class PrecisionMode : std::uint8_t;  // precision.h

enum class ConstraintMode : std::uint8_t {
  kNone,      // only keeps the account
  kBoost,     // a fixed lambda
  kAdaptive,  // a lambda that follows the miss rate
  kHard,      // replaces missing experts
};

ConstraintMode constraint_mode(std::string_view name);  // none, boost, adaptive, hard; Error(kUsage)
std::string_view constraint_name(ConstraintMode mode);

struct ConstraintConfig {
  ConstraintMode mode = ConstraintMode::kNone;
  double limit = 0.05;              // m*, of the HBN miss rate: kAdaptive, kHard. [0, 1]
  double lambda = 0;                // for cache-prior: kBoost, kHard; kAdaptive starts with it. [0, 1]
  double eta = 0.05;                // kAdaptive: how fast lambda follows
  std::uint32_t top_j = 0;          // kHard: how many best experts of a token are never replaced
  std::uint32_t exempt_steps = 10;  // the first decode steps of a sequence, which are free and not accounted
  // The parts of an expert that any use needs (least_parts), and the parts that normalise the rate; equal in
  // families without slices.
  Parts low = Part::kMsb, high = Part::kMsb | Part::kLsb;

  void validate() const;  // Error(kUsage)
};

// For models in slices: sets the views.
void set_views(PrecisionMode mode, ConstraintConfig& limits);

}  // namespace sluice::experts
