#include "commands/hybrid/hybrid_flags.h"

#include "base/setting.h"
#include "command.h"
#include "experts/device_presets.h"
#include "experts/registry.h"
#include "flags/number_range.h"
#include "lab/machine/hybrid_machine.h"

namespace sluice::app {

void add_hybrid_flags(Command& command, HybridFlags& flags) {
  const std::string group = "Host and device on a modelled machine";
  std::string machines, presets, placements, prefetches;
  for (const std::string& name : lab::hybrid_machine_names()) machines += name + ", ";
  for (const experts::DevicePreset& one : experts::device_presets()) presets += std::string(one.name) + " ";
  for (const experts::PlacementPolicy& one : experts::placement_policies())
    placements += std::string(one.name) + " ";
  for (const experts::PrefetchPolicy& one : experts::prefetch_policies())
    prefetches += std::string(one.name) + " ";
  command
      .add_option(
          Setting::kDeviceSlots, &flags.slots,
          "Experts of each layer that the device holds; several with commas between them; default: of "
          "the machines smoe-s1, -s2 and -s3 what their cards held. With " +
              Setting::kMachine + ": " + machines + "or a JSON file; and " + Setting::kPreset + ": " +
              presets)
      ->group(group);
  command.add_option(Setting::kDeviceMemory, &flags.memories, "The same in bytes for all layers (4GiB)")
      ->group(group);
  command
      .add_option(Setting::kDeviceCache, &flags.caches,
                  "Caches of the device, with commas between them; default: the preset's")
      ->group(group);
  command
      .add_option(
          Setting::kTiers, &flags.tiers,
          "An expert that the device keeps stays in the host's memory, too, as its cache says: "
          "inclusive; or does not, and goes back there when it leaves the device: exclusive; default: "
          "exclusive where " +
              Setting::kCapacity + " is too small for all experts and the host's cache can take them back")
      ->group(group);
  command.add_option(Setting::kPlacement, &flags.placement, placements + "(default: the preset's)")
      ->group(group);
  command
      .add_option(Setting::kPlacementPrefill, &flags.placement_prefill,
                  "The same of steps with tokens of prompts; default: the preset's, or " +
                      Setting::kPlacement + " where that is given")
      ->group(group);
  command
      .add_option(Setting::kLink, &flags.link,
                  "The link carries no more than this (25GB/s), however fast the machine's is")
      ->group(group);
  command
      .add_option(Setting::kDeviceKeep, &flags.device_keep,
                  "Slots of experts in slices have room for both slices: full; default: with " +
                      Setting::kPrecision + " low for the MSB alone")
      ->one_of({"full"})
      ->group(group);
  command
      .add_option(
          Setting::kPrefetch, &flags.prefetch,
          prefetches +
              "(default: the preset's). stream, raw, dali-residual and smoe-partial need a trace made with " +
              Setting::kAhead + ", stat and dali-residual also " + Setting::kRanksOf)
      ->group(group);
  command
      .add_option(Setting::kPrefetchSize, &flags.prefetch_size,
                  "Experts of a layer that are prefetched, at most; default: 1 where a layer has 8, else 4")
      ->check(whole_number(Setting::kPrefetchSize, 0, 1 << 16))
      ->group(group);
  command
      .add_option(Setting::kBatch, &flags.batches,
                  "Sequences that are decoded together; several with commas between them")
      ->group(group);
  add_device_cache_flags(command, group, flags.cache_rules);
}

}  // namespace sluice::app
