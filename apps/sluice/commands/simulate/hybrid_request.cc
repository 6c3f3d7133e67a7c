#include "commands/simulate/hybrid_request.h"

#include <string>
#include <utility>

#include "base/setting.h"
#include "engine/plan/policy_plan.h"
#include "flags/slice_effects.h"

namespace sluice::app {
namespace {

// For a replay with a device: the rules of experts in slices, where the flags name a precision; else refuses
// the flags of slices.
void set_slice_rules(const SliceFlags& flags, HybridRequest& request) {
  if (flags.precision.empty()) return check_whole_experts(flags);
  engine::EngineOptions chosen;
  set_slice_options(flags, chosen);
  chosen.router = "exact";
  chosen.cache = request.host.cache;
  const engine::PolicyPlan plan = engine::choose_policies(chosen);
  check_effects(flags, chosen, plan);
  request.slices = {plan.precision, plan.slices, plan.limits};
}

// The rules of the router smoe, and which flags give them; and those of slices.
void set_smoe_rules(const SliceFlags& flags, HybridRequest& request) {
  engine::EngineOptions chosen;
  set_slice_options(flags, chosen);
  request.smoe = chosen.smoe;
  for (const auto& [setting, typed] : {std::pair(Setting::kAlpha, &flags.alpha),
                                       {Setting::kMerge, &flags.merge},
                                       {Setting::kRenorm, &flags.renorm},
                                       {Setting::kResident, &flags.resident}})
    if (!typed->empty()) request.smoe_flags.push_back(setting);
  SliceFlags others = flags;
  others.alpha = others.merge = others.renorm = others.resident = "";
  set_slice_rules(others, request);
}

}  // namespace

HybridRequest hybrid_request(const SimulateOptions& options) {
  HybridRequest request{{options.caches, options.capacities, options.scope, options.keep, options.pools},
                        options.trace,
                        options.machine.machine,
                        options.timed.presets,
                        options.decisions,
                        options.timed.ranks_of,
                        options.machine.prefill,
                        options.seed(),
                        options.common.json,
                        options.common.quiet,
                        options.machine.router};
  set_smoe_rules(options.slices, request);
  return request;
}

}  // namespace sluice::app
