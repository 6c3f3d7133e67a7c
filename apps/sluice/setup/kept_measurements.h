// What has been measured of a model and kept, beside its store or in a file that a flag names: the profile,
// the residual of the prefetch dali-residual, and what the router smoe costs.
#pragma once

#include <optional>

#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "engine/plan/profile.h"
#include "flags/engine_flags.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::app {

// The store's profile, if it has one. A profile that is damaged or cannot be read is a warning, since costs
// can be measured again. The manifest's damage is no warning: opening the store ends with that error.
std::optional<engine::Profile> kept_profile(const EngineFlags& flags);
// For a packed store without a profile: keeps the profile that this run has measured as the store's sidecar,
// so that all later runs plan alike. Where a store's profile has no costs of this run's device, these are
// added to it, in place of those of another device. Does nothing if there is nothing new, if the user gave a
// profile, or if the store cannot be written.
void keep_profile(const EngineFlags& flags, const engine::Engine& engine);

// Sets the residual that a flag or the store has, if any, in options that are otherwise ready for
// engine::choose_policies(). One of a store that cannot be read is a warning, as in kept_profile(). Refuses a
// flag whose residual nothing would follow, before its file is opened. Errors of the file.
void find_residual(const EngineFlags& flags, engine::EngineOptions& options);
// Forgets a residual that nothing follows.
void drop_unused_residual(const EngineFlags& flags, const engine::PolicyPlan& chosen,
                          engine::EngineOptions& options);

// Where the router smoe was chosen, and no limit on the loss: what it costs by the store's calibration, and
// the alpha that follows where neither flag nor preset says it. A calibration that cannot be read is a
// warning, as in kept_profile(); it says nothing of weights that another rule gives (Setting::kRenorm).
void find_smoe_losses(const EngineFlags& flags, const engine::PolicyPlan& chosen,
                      engine::EngineOptions& options);

}  // namespace sluice::app
