#include "flags/engine_flags.h"

#include <fmt/format.h>

#include "base/setting.h"
#include "experts/device_presets.h"
#include "experts/registry.h"
#include "flags/command_line.h"
#include "flags/model_argument.h"
#include "flags/number_range.h"
#include "flags/policy_names.h"

namespace sluice::app {
namespace {

const std::string kDeviceGroup = "Device";

void add_device_choice(Command& command, EngineFlags& flags, const EngineHelp& help,
                       const std::string& does) {
  if (help.finds_device) flags.device = "auto";
  command
      .add_option(Setting::kDevice, &flags.device,
                  does +
                      ": cuda, a GPU (cuda:1 the second one); auto, a GPU that is there and goes with the "
                      "rest, else none; none; emulated, which may be followed by "
                      ":link=2GB/s,latency=20us,compute=60GB/s,… (its seconds are no speed of the program)")
      ->group(kDeviceGroup)
      ->show_default();
  command
      .add_option(Setting::kDeviceMath, &flags.device_math,
                  "How it computes: same, with the bits of the host; or fast, a GPU's products of BF16 by "
                  "its units for "
                  "matrices, with other bits, where no measured time says which unit computes an expert (" +
                      Setting::kPlacement + " device); default: same")
      ->group(kDeviceGroup);
  command
      .add_flag(
          Setting::kTimedBits, flags.allow_timed_bits,
          "Let " + Setting::kDeviceMath + " fast go with any placement: the text may differ from run to run")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kLink, &flags.link,
                  "Its link carries no more than this each way (25GB/s), however fast it is")
      ->group(kDeviceGroup);
  command
      .add_option(
          Setting::kDenseOn, &flags.dense_on,
          "Where dense weights and the key/value cache are, and attention is computed: host, device, or "
          "auto (the device if it has kernels for them, and they fit there); default: auto for a GPU, "
          "host for an emulated device")
      ->group(kDeviceGroup);
  command
      .add_option(
          Setting::kDeviceKeep, &flags.device_keep,
          "Experts stay on the device as: full; packed, two thirds of the memory and of each copy, for "
          "stores of codec native, and the host then keeps them so, too; auto, which is as the host "
          "keeps them")
      ->group(kDeviceGroup)
      ->show_default();
}

void add_device_flags(Command& command, EngineFlags& flags, const EngineHelp& help) {
  add_device_choice(command, flags, help, "Computes experts beside the host");
  command
      .add_option(Setting::kPlacementPrefill, &flags.placement_prefill,
                  Setting::kPlacement +
                      " of steps with tokens of prompts; default: as all steps, or as the preset has it "
                      "where " +
                      Setting::kPlacement + " is not given")
      ->group(kDeviceGroup);
  command
      .add_option(
          Setting::kDeviceMemory, &flags.device_memory,
          "Budget of the device's own memory (8MiB), beside " + Setting::kMemory +
              "; default: what its slots take; else of a GPU what is free, less max(512 MiB, 5 %), of an "
              "emulated device the smaller of 1 GiB and a quarter of what is free here")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kDeviceSlots, &flags.device_slots,
                  "Experts of each layer that stay on the device; default: as many as its memory holds")
      ->check(whole_number(Setting::kDeviceSlots, 0, 65535))
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kDeviceCache, &flags.device_cache,
                  "Which experts stay there: " + device_cache_names() + "; default: workload-ema")
      ->group(kDeviceGroup);
  add_device_cache_flags(command, kDeviceGroup, flags.device_cache_rules);
  command
      .add_option(Setting::kRanksOf, &flags.ranks_of,
                  "Recorded routing of another text (sluice trace), which says the caches that keep popular "
                  "experts there how often each is used")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kTiers, &flags.tiers,
                  "An expert that stays on the device stays in the host's memory, too, as its cache says: "
                  "inclusive; or does not, and goes back there when it leaves the device: exclusive, which "
                  "reads less from disk; default: exclusive where the host's memory does not hold all "
                  "experts and its cache can take them back")
      ->group(kDeviceGroup);
  command
      .add_option(Setting::kPrefetchSize, &flags.prefetch_size,
                  "Experts of a layer that " + Setting::kPrefetch +
                      " copies there ahead, at most; default: 1 where a layer has 8, else 4")
      ->check(whole_number(Setting::kPrefetchSize, 0, 65535))
      ->group(kDeviceGroup);
}

// Routers that play a trace, or the others.
std::string router_names(bool scripted) {
  return names_of(experts::router_policies(),
                  [&](const experts::RouterPolicy& router) { return router.scripted == scripted; });
}

void add_policy_flags(Command& command, EngineFlags& flags, const EngineHelp& help) {
  const std::string policies = "Policies", preset_rules = "; default: the preset's";
  command
      .add_option(Setting::kPreset, &flags.preset,
                  "Policies set together: " + names_of(experts::presets()) +
                      (help.devices ? "; with a device " + names_of(experts::device_presets()) : "") +
                      "; default: " + help.preset)
      ->group(policies);
  command
      .add_option(Setting::kRouter, &flags.router,
                  fmt::format("{}{} ({}){}", router_names(false),
                              help.plays_routing
                                  ? fmt::format("; with {} {}", flag(Setting::kRouting), router_names(true))
                                  : "",
                              help.router, preset_rules))
      ->group(policies);
  if (help.plays_routing) {
    command
        .add_option(Setting::kRouting, &flags.routing,
                    "What recorded plays: a trace of sluice trace, a .mrt or a .csv, fitted to the model")
        ->group(policies);
    command
        .add_option(Setting::kRoutingLayers, &flags.routing_layers,
                    "The trace's layer that recorded plays in each sparse layer, with commas between them; "
                    "default: the layers of the trace in turns")
        ->group(policies);
  }
  command.add_option(Setting::kCache, &flags.cache, names_of(experts::cache_policies()) + preset_rules)
      ->group(policies);
  command
      .add_option(Setting::kCacheScope, &flags.cache_scope,
                  "One cache for all layers or one a layer: global, layer")
      ->group(policies)
      ->show_default();
  command
      .add_option(Setting::kCapacity, &flags.capacity,
                  "Size of all caches together (4GiB), so that every start decides alike; default: what " +
                      Setting::kMemory + " leaves, which differs a little")
      ->group(policies);
  command
      .add_option(Setting::kScheduler, &flags.scheduler,
                  names_of(experts::scheduler_policies()) + preset_rules)
      ->group(policies);
  command
      .add_option(Setting::kPrefetch, &flags.prefetch,
                  names_of(experts::prefetch_policies()) + preset_rules +
                      ", of auto stream (none for slices whose router prefers what is in memory)")
      ->group(policies);
  command
      .add_option(Setting::kPlacement, &flags.placement,
                  names_of(experts::placement_policies()) + preset_rules)
      ->group(policies);
  command
      .add_option(Setting::kProfile, &flags.profile,
                  "Measured costs to plan with (sluice profile); default: the store's, or measured at the "
                  "start (a store without any keeps them)")
      ->group(policies);
  command
      .add_option(
          Setting::kResidual, &flags.residual,
          "What " + Setting::kPrefetch +
              " dali-residual adds to inputs of routers (sluice calibrate); default: the store's. auto "
              "prefetches so where that was found to be better than stream")
      ->group(policies);
  if (help.devices) add_device_flags(command, flags, help);
  add_computing_flags(command, flags.slices);
  add_slice_flags(command, flags.slices);
}

}  // namespace

void add_engine_flags(Command& command, EngineFlags& flags, const EngineHelp& help) {
  const std::string machine = "This machine";
  add_model_argument(
      command, "MODEL", flags.model, flags,
      "Hugging Face directory, packed NAME.sluice store, GGUF file, or a name that sluice list shows");
  add_common_flags(
      command, flags,
      {.memory = "Budget for everything (8GiB, 500MB); default: what is free, less max(512 MiB, 5 %)",
       .threads = "Compute threads; 0: all usable CPUs, beside a GPU two less of eight or more",
       .isa = "Instruction set: auto, scalar, avx2, avx512, avx512_vbmi2, avx512_bf16, amx, neon",
       .io = "How weights are read: direct, buffered, mmap",
       .seed = help.seed,
       .json = help.json,
       .quiet = "No progress, statistics and warnings on standard error"});
  if (help.policies != PolicyFlags::kNone)
    command.add_option(Setting::kContext, &flags.context, help.context)
        ->check(whole_number(Setting::kContext, 1, (std::uint64_t{1} << 31) - 1))
        ->group(machine);
  command.add_option(Setting::kDisk, &flags.disk, "Asynchronous reads by: auto, io_uring, pread")
      ->group(machine)
      ->show_default();
  command.add_option(Setting::kMath, &flags.math, "Arithmetic: auto (BF16 key/value cache) or f32")
      ->group(machine)
      ->show_default();
  command
      .add_option(Setting::kKv, &flags.kv,
                  "Key/value cache: bf16, f32, int8 (half of bf16, with rounding of its own), auto")
      ->group(machine)
      ->show_default();
  command.add_option(Setting::kChunk, &flags.chunk, "Most prompt tokens of one step")
      ->check(whole_number(Setting::kChunk, 1, 65536))
      ->group(machine)
      ->show_default();
  command
      .add_option(
          Setting::kKeep, &flags.keep,
          "Experts stay in memory as: full, or packed (smaller; of codec native computed with as "
          "they are, else decoded at each use); default: full, or packed where a device keeps them so")
      ->group(machine);
  command
      .add_option(
          Setting::kDense, &flags.dense,
          "Dense matrices of a store of codec native stay in memory as: words, packed (a third smaller, "
          "computed with as they are), auto")
      ->group(machine)
      ->show_default();
  if (help.policies != PolicyFlags::kNone)
    add_policy_flags(command, flags, help);
  else if (help.devices)
    add_device_choice(command, flags, help, "Also measures this device, at work beside the host");
}

}  // namespace sluice::app
