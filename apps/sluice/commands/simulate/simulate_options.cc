#include "commands/simulate/simulate_options.h"

#include <algorithm>

#include "base/setting.h"
#include "engine/plan/policy_plan.h"
#include "experts/registry.h"
#include "flags/policy_names.h"
#include "flags/slice_effects.h"
#include "lab/machine/hybrid_machine.h"

namespace sluice::app {
namespace {

// False for the name of no router, too.
bool routes_beside_device(std::string_view router) {
  return std::ranges::any_of(experts::router_policies(), [&](const experts::RouterPolicy& policy) {
    return policy.name == router && (!policy.lossy || policy.rules == experts::RouterRules::kSmoe);
  });
}

// For a replay that takes no recorded ranks.
Error ranks_without_effect(std::string_view replay) {
  return Error(ErrorKind::kUsage, "this flag has no effect here")
      .in(Setting::kRanksOf)
      .expected("a timed replay (" + Setting::kProfile + ", " + Setting::kPreset + " and " +
                Setting::kMemoryExperts + "), or one with a device (" + Setting::kMachine + " and " +
                Setting::kDeviceSlots + ")")
      .found(replay)
      .fix("give what the flag needs, or leave " + Setting::kRanksOf + " out");
}

// The flag by which the user asks for a timed replay.
Setting asks_for_times(const TimedFlags& flags) {
  return !flags.profile.empty()   ? Setting::kProfile
         : !flags.presets.empty() ? Setting::kPreset
                                  : Setting::kMemoryExperts;
}

}  // namespace

lab::ReplayRouter cache_router(const SimulateOptions& options) {
  lab::ReplayRouter router;
  if (!options.machine.router.empty()) router.router = find_router_for(false, options.machine.router);
  engine::EngineOptions chosen;
  set_slice_options(options.slices, chosen);
  router.smoe = chosen.smoe;
  return router;
}

bool asks_for_a_device(const SimulateOptions& options) {
  const std::string first = options.machine.machine.substr(0, options.machine.machine.find(','));
  if (!options.hybrid.asked() && !lab::is_hybrid_machine(first)) return false;
  if (first.empty())
    throw Error(ErrorKind::kUsage, "a replay with a device needs a machine")
        .in(Setting::kMachine)
        .expected("a name such as dali-3090, or a JSON file: a machine, or a profile with a device")
        .found("none")
        .fix("add " + Setting::kMachine + " dali-3090");
  if (!options.timed.profile.empty() || !options.timed.memories.empty() || !options.machine.slices.empty() ||
      !options.machine.shape.empty())
    throw Error(ErrorKind::kUsage,
                "a replay with a device takes its costs from the machine, and sizes from the trace")
        .in(Setting::kMachine)
        .expected("what `sluice simulate " + Setting::kHelp +
                  "` lists under \"Host and device\", and the host's cache")
        .found("flags of another kind of replay")
        .fix("leave out " + Setting::kProfile + ", " + Setting::kMemoryExperts + ", " + Setting::kSlices +
             " and " + Setting::kShape);
  if (!options.machine.router.empty() && !routes_beside_device(options.machine.router))
    throw Error(ErrorKind::kUsage,
                "a replay with a device takes the routing as it was recorded, or routes by smoe")
        .in(Setting::kRouter)
        .expected("exact or smoe")
        .found(options.machine.router)
        .fix("name one of these, or leave " + Setting::kRouter + " out");
  return true;
}

bool asks_for_a_machine(const SimulateOptions& options) {
  MachineFlags flags = options.machine;
  const bool of_caches = !options.caches.empty() && (!options.capacities.empty() || !options.pools.empty());
  if (of_caches && options.timed.memories.empty()) flags.router.clear();
  return flags.asked();
}

void check_machine_options(const SimulateOptions& options) {
  if (!options.capacities.empty() || !options.pools.empty() || !options.timed.profile.empty() ||
      options.scope == "layer")
    throw Error(ErrorKind::kUsage,
                "a replay on a modelled machine has one cache of " + Setting::kMemoryExperts)
        .in(Setting::kMachine)
        .expected(Setting::kMemoryExperts + " and none of the other sizes")
        .found("flags of another kind of replay")
        .fix("leave out " + Setting::kCapacity + ", " + Setting::kScope + ", " + Setting::kPools + " and " +
             Setting::kProfile);
  if (!options.timed.ranks_of.empty()) throw ranks_without_effect("a replay on a machine without a device");
}

void check_timed_options(const SimulateOptions& options) {
  const TimedFlags& timed = options.timed;
  const bool has_caches = !options.caches.empty() || !options.capacities.empty() || !options.pools.empty() ||
                          !options.decisions.empty();
  if (timed.profile.empty() && timed.presets.empty() && timed.memories.empty())
    throw ranks_without_effect(has_caches ? "a replay of caches" : "none of these");
  if (has_caches)
    throw Error(ErrorKind::kUsage,
                "a timed replay takes " + Setting::kPreset + " and " + Setting::kMemoryExperts)
        .in(asks_for_times(timed))
        .expected("a timed replay alone")
        .found("flags of a replay of caches, too")
        .fix("leave out " + Setting::kCache + ", " + Setting::kCapacity + ", " + Setting::kPools + " and " +
             Setting::kDecisions);
}

void check_whole_experts(const SliceFlags& flags, const lab::ReplayRouter& router) {
  engine::EngineOptions chosen;
  set_slice_options(flags, chosen);
  if (!flags.precision.empty())
    throw Error(ErrorKind::kUsage, "only experts in slices have two precisions")
        .in(Setting::kPrecision)
        .expected(Setting::kCache + " slice-lru, or " + Setting::kMachine)
        .found(flags.precision)
        .fix("give what the flag needs, or leave " + Setting::kPrecision + " out");
  engine::EngineOptions replayed;  // whatever the flags say
  replayed.router = router.router;
  replayed.cache = "lru";
  check_effects(flags, chosen, engine::choose_policies(replayed));
}

}  // namespace sluice::app
