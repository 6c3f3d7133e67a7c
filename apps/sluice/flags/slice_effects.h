// Refuses flags of slices and limits that have no effect in this run.
#pragma once

#include <string>

#include "engine/plan/policy_plan.h"
#include "flags/slice_flags.h"

namespace sluice::app {

bool keeps_limit(experts::ConstraintMode mode);  // adaptive, hard

// Call after set_slice_options() and set_max_loss(): Error(kUsage) that names a given flag without effect,
// and the flags that it would need.
void check_effects(const SliceFlags& flags, const engine::EngineOptions& options,
                   const engine::PolicyPlan& chosen);

}  // namespace sluice::app
