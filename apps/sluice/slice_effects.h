// Flags of slices and limits that would change nothing are refused: who gives one expects it to act.
#pragma once

#include <string>

#include "engine/options.h"
#include "slice_flags.h"

namespace sluice::app {

// What a run computes with.
struct ChosenPolicies {
  experts::PrecisionMode precision;
  experts::ConstraintMode constraint;
  std::string router, cache;
};
// What options come to, with what their preset sets. Of a model without slices the precision is kFull.
ChosenPolicies chosen_policies(const engine::EngineOptions& options);

bool keeps_limit(experts::ConstraintMode mode);  // adaptive, hard

// Behind set_slice_options() and set_max_loss(): Error(kUsage) that names a flag which was given and has no
// effect, and those that it would need.
void check_effects(const SliceFlags& flags, const engine::EngineOptions& options,
                   const ChosenPolicies& chosen);

}  // namespace sluice::app
