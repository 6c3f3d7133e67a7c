// Refuses flags of slices and limits that have no effect in this run.
#pragma once

#include <string>

#include "engine/plan/options.h"
#include "flags/slice_flags.h"

namespace sluice::app {

// The policies that a run computes with.
struct ChosenPolicies {
  experts::PrecisionMode precision;
  experts::ConstraintMode constraint;
  std::string router, cache;
};
// The policies of `options` after filling in their preset. For a model without slices the precision is kFull.
ChosenPolicies chosen_policies(const engine::EngineOptions& options);

bool keeps_limit(experts::ConstraintMode mode);  // adaptive, hard

// Call after set_slice_options() and set_max_loss(): Error(kUsage) that names a given flag without effect,
// and the flags that it would need.
void check_effects(const SliceFlags& flags, const engine::EngineOptions& options,
                   const ChosenPolicies& chosen);

}  // namespace sluice::app
