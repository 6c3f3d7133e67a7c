// `sluice simulate`: what any cache would have done with recorded routing.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "command.h"
#include "commands/hybrid/hybrid_replay.h"
#include "commands/machine_replay.h"
#include "commands/simulate/cache_replay.h"
#include "commands/simulate/cache_rows.h"
#include "commands/simulate/hybrid_request.h"
#include "commands/simulate/simulate_options.h"
#include "commands/simulate/slice_lru_replay.h"
#include "commands/timed_replay.h"
#include "experts/registry.h"
#include "flags/common_flags.h"
#include "flags/number_range.h"

namespace sluice::app {
namespace {

void simulate(const SimulateOptions& options) {
  if (asks_for_a_device(options)) return hybrid_replay(hybrid_request(options), options.hybrid);
  if (asks_for_a_machine(options)) {
    check_machine_options(options);
    return machine_replay({options.trace, options.caches, options.timed.presets, options.timed.memories,
                           options.decisions, options.seed(), options.common.json, options.common.quiet},
                          options.machine, options.slices);
  }
  const lab::ReplayRouter router = cache_router(options);
  const std::vector<std::string> caches =
      options.caches.empty() ? std::vector<std::string>() : cache_names(options.caches, router.routes());
  const bool by_slices =
      std::ranges::any_of(caches, [](const auto& name) { return experts::find_cache(name).sliced; });
  if (!by_slices) check_whole_experts(options.slices, router);
  if (options.machine.prefill)
    throw Error(ErrorKind::kUsage,
                "only a replay on a machine or with a device asks which tokens are prompts")
        .in(Setting::kPrefill)
        .expected(Setting::kMachine + " or " + Setting::kDeviceSlots)
        .found("neither")
        .fix("leave " + Setting::kPrefill + " out, or name a machine");
  if (options.timed.asked()) {
    check_timed_options(options);
    return timed_replay({options.trace, options.scope.empty() ? "global" : options.scope, options.seed(),
                         options.common.json, options.common.quiet, options.rules},
                        options.timed);
  }
  if (options.caches.empty())
    throw Error(ErrorKind::kUsage, "nothing to replay the trace through")
        .in(Setting::kCache)
        .expected(Setting::kCache + " and " + Setting::kCapacity + "; or " + Setting::kProfile + ", " +
                  Setting::kPreset + " and " + Setting::kMemoryExperts)
        .found("neither")
        .fix("name a cache and its capacity: " + Setting::kCache + " lru " + Setting::kCapacity + " 64");
  if (by_slices) {
    if (caches.size() > 1)
      throw Error(ErrorKind::kUsage, "slices and whole experts are not replayed together")
          .in(Setting::kCache)
          .expected("slice-lru alone")
          .found(options.caches)
          .fix("replay them one after the other");
    return slice_lru_replay(options);
  }
  cache_replay(options, cache_rows(options, router, caches));
}

}  // namespace

void add_simulate(Command& app) {
  auto options = std::make_shared<SimulateOptions>();
  Command* command = app.add_command("simulate", "Replay recorded routing through any cache");
  std::string names;
  for (const experts::CachePolicy& policy : experts::cache_policies())
    if (!is_for_a_device(policy)) names += std::string(policy.name) + ", ";
  command
      ->add_option(Setting::kTrace, &options->trace,
                   "File of `sluice trace`, .mrt or .csv; each also as .zst")
      ->required();
  command->add_option(Setting::kCache, &options->caches,
                      names + "several with commas between them, or all (of whole experts, without pools)");
  command->add_option(Setting::kCapacity, &options->capacities,
                      "Room of each cache: experts (64) or a size (4GiB); several with commas between them");
  command
      ->add_option(
          Setting::kScope, &options->scope,
          "One cache a layer, or one for all: layer (the default), global (the default of timed replays)")
      ->one_of({"layer", "global"});
  command->add_option(Setting::kKeep, &options->keep, "Experts stay in memory as: full, packed")
      ->one_of({"full", "packed"})
      ->show_default();
  command->add_option(Setting::kExpertBytes, &options->expert_bytes,
                      "Size of every expert, where the trace does not say it or says another");
  command
      ->add_option(Setting::kWindow, &options->window,
                   "Also report the hit rate of each stretch of this many steps")
      ->check(whole_number(Setting::kWindow, 1, std::uint64_t{1} << 31));
  command->add_option(
      Setting::kDecisions, &options->decisions,
      "Write every decision to this new file, as `sluice run " + Setting::kDecisions + "` does");
  add_common_flags(*command, options->common,
                   {.seed = "For caches that draw (marking); default: 0",
                    .json = "Print one JSON object and nothing else",
                    .quiet = "No warnings on standard error"});
  const std::string pools = "Pools (zip-pools, and presets with pools)";
  command
      ->add_option(
          Setting::kPools, &options->pools,
          "Slots of each layer, F,C,S,E: experts in full, compressed, as sign+mantissa, as exponents")
      ->group(pools);
  command->add_option(Setting::kDelta, &options->rules.delta, "Experts that a rank may be beyond its pool")
      ->check(whole_number(Setting::kDelta, 0, 1 << 20))
      ->group(pools)
      ->show_default();
  command
      ->add_option(
          Setting::kDemote,
          [options](const std::string& name) { options->rules.demotion = *experts::find_demotion(name); },
          "Experts without room in their pool: none (they leave), room (those of C stay as S or E where "
          "there is room), rank (they go on to the next pool, and colder ones make room; the default)")
      ->one_of({"none", "room", "rank"})
      ->group(pools);
  command
      ->add_option(Setting::kHalfLife, &options->rules.half_life,
                   "Steps in which counts halve; 0: they never do")
      ->group(pools)
      ->show_default();
  add_timed_flags(*command, options->timed);
  add_slice_flags(*command, options->slices);
  add_machine_flags(*command, options->machine);
  add_hybrid_flags(*command, options->hybrid);
  command->footer(
      "Examples:\n"
      "  sluice simulate --trace fable.trace --cache all --capacity 8\n"
      "  sluice simulate --trace qwen.route.csv.zst --cache lru,lfu,belady --capacity 1GiB,2GiB,4GiB --scope "
      "global\n"
      "  sluice simulate --trace fable.trace --cache zip-pools --pools 3,4,2,1\n"
      "  sluice simulate --trace fable.trace --cache lru,score-window --capacity 10MiB --scope global "
      "--router "
      "smoe --alpha 0.25\n"
      "  sluice simulate --trace fable.trace --profile here.json --preset zipmoe,z-C,z-basic-lru "
      "--memory-experts "
      "10MiB,20MiB\n"
      "  sluice simulate --trace dsv2lite.summary612.mrt.zst --machine slicemoe --slices "
      "8/4,4/2 --memory-experts 1.8GB,2.4GB --prefill 500\n"
      "  sluice simulate --trace dsv2lite.summary612.mrt.zst --machine dali-3090 --preset "
      "dali,gpu-lru --prefetch none --device-slots 16,32\n"
      "Those traces are in tests/data/routing of the source. " +
      Setting::kBatch + " takes as many sequences as the trace has: that one has 1.");
  command->callback([options] { simulate(*options); });
}

}  // namespace sluice::app
