#include "commands/hybrid/hybrid_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/bytes.h"
#include "base/setting.h"
#include "experts/core/tier.h"
#include "experts/device_caches.h"
#include "experts/device_presets.h"
#include "experts/named_policy.h"
#include "experts/registry.h"
#include "flags/device_cache_flags.h"
#include "flags/policy_names.h"
#include "flags/split_list.h"

namespace sluice::app {
namespace {

std::vector<std::uint32_t> parse_numbers(const std::string& list, Setting setting, std::uint32_t least) {
  constexpr std::uint32_t kMost = 65536;
  std::vector<std::uint32_t> numbers;
  for (const std::string& part : split_list(list, setting)) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size() || number < least || number > kMost)
      throw Error(ErrorKind::kUsage, "this is no such number")
          .in(setting)
          .expected(fmt::format("numbers from {} to {}, with commas between them", least, kMost))
          .found(fmt::format("\"{}\"", part))
          .fix("correct the entry");
    numbers.push_back(number);
  }
  return numbers;
}

// Slots a layer, for each entry of the list; without one, as the machine's paper has them.
std::vector<std::uint32_t> slots_of(const HybridFlags& flags, const lab::HybridMachine& machine,
                                    std::uint32_t layers, std::uint32_t experts) {
  std::vector<std::uint32_t> slots;
  if (flags.slots.empty() && flags.memories.empty() && !machine.slot_shares.empty()) {
    for (const double share : machine.slot_shares)
      slots.push_back(static_cast<std::uint32_t>(share * experts));
    return slots;
  }
  if (const bool neither = flags.slots.empty(); flags.memories.empty() == neither)
    throw Error(ErrorKind::kUsage,
                neither ? "the device's cache has no size" : "the device's cache has one size")
        .in(Setting::kDeviceSlots)
        .expected("either " + Setting::kDeviceSlots + " (experts of each layer) or " + Setting::kDeviceMemory)
        .found(neither ? "neither" : "both")
        .fix(neither ? "add " + Setting::kDeviceSlots + " 16, or another size" : "leave one of them out");
  if (!flags.slots.empty()) slots = parse_numbers(flags.slots, Setting::kDeviceSlots, 0);
  if (!flags.memories.empty())
    for (const std::string& memory : split_list(flags.memories, Setting::kDeviceMemory))
      slots.push_back(static_cast<std::uint32_t>(std::min<Bytes>(
          parse_size(memory, Setting::kDeviceMemory) / (machine.expert_bytes * layers), experts)));
  for (const std::uint32_t one : slots) experts::check_layer_has(one, experts, Setting::kDeviceSlots);
  return slots;
}

std::vector<std::string> list_or(const std::string& list, Setting setting, std::string_view otherwise) {
  return list.empty() ? std::vector<std::string>{std::string(otherwise)} : split_list(list, setting);
}

// The presets that are asked for; null, no preset, where both parts of one are named.
std::vector<const experts::DevicePreset*> presets_of(const HybridRequest& request, const HybridFlags& flags) {
  if (request.presets.empty() && !flags.placement.empty() && !flags.caches.empty()) return {nullptr};
  std::vector<const experts::DevicePreset*> presets;
  for (const std::string& name : list_or(request.presets, Setting::kPreset, "dali"))
    presets.push_back(&experts::find_device_preset(name));
  return presets;
}

// Empty: as it was recorded.
std::vector<std::optional<std::uint32_t>> batches_of(const HybridFlags& flags) {
  if (flags.batches.empty()) return {std::nullopt};
  std::vector<std::optional<std::uint32_t>> batches;
  for (const std::uint32_t one : parse_numbers(flags.batches, Setting::kBatch, 1)) batches.emplace_back(one);
  return batches;
}

// What a user names beside a preset.
struct NamedParts {
  explicit NamedParts(const HybridFlags& flags) : prefetch(flags.prefetch) {
    if (!flags.placement_prefill.empty())
      in_prompts = experts::find_placement(flags.placement_prefill, Setting::kPlacementPrefill);
    placement = flags.placement;
  }
  experts::Named<experts::PrefetchPolicy> prefetch;
  experts::Named<experts::PlacementPolicy> in_prompts, placement;
};

void set_prefill(const NamedParts& named, const experts::DevicePreset* preset,
                 lab::HybridSettings& settings) {
  const experts::PrefillPlacement prefill =
      experts::prefill_placement(preset, named.placement.row(), named.in_prompts.row());
  settings.prefill_placement = prefill.policy;
  settings.prefill_from = prefill.from;
}

// The row's machine has been set.
void set_prefetch(const NamedParts& named, const experts::DevicePreset* preset, const HybridFlags& flags,
                  std::uint32_t experts, HybridRow& row) {
  lab::HybridSettings& settings = row.settings;
  const experts::PrefetchPolicy& prefetch = named.prefetch.or_usual(
      preset != nullptr ? preset->prefetch : experts::Named<experts::PrefetchPolicy>("none"));
  const std::uint32_t usual =
      experts::usual_prefetch_size(named.prefetch.empty() ? preset : nullptr, experts);
  settings.prefetch = prefetch;
  settings.guards_prefetch = experts::guards_prefetch(preset);
  settings.prefetch_size = std::min(static_cast<std::uint32_t>(flags.prefetch_size.value_or(usual)), experts);
  // An engine has a staging buffer more for each expert that it copies ahead.
  const bool ahead = prefetch.prefetches && row.machine->buffers != experts::kAnyBuffers;
  settings.buffers = row.machine->buffers + (ahead ? settings.prefetch_size : 0);
}

// As the engine chooses them.
void set_slices(const HybridRequest& request, const HybridFlags& flags, lab::HybridSettings& settings) {
  settings.slices = request.slices;
  const bool low = request.slices && request.slices->precision.mode == experts::PrecisionMode::kLow;
  if (low && flags.device_keep.empty()) settings.slot_slices = experts::Part::kMsb;
}

}  // namespace

std::vector<HybridRow> hybrid_rows(const HybridRequest& request, const HybridFlags& flags,
                                   const std::vector<lab::HybridMachine>& machines,
                                   const trace::TraceHeader& header) {
  if (flags.prefetch_size)
    experts::check_layer_has(*flags.prefetch_size, header.experts, Setting::kPrefetchSize);
  std::vector<HybridRow> rows;
  for (const lab::HybridMachine& machine : machines)
    for (const std::optional<std::uint32_t>& batch : batches_of(flags))
      for (const std::uint32_t slots : slots_of(flags, machine, header.layers, header.experts))
        for (const experts::DevicePreset* const preset : presets_of(request, flags)) {
          const NamedParts named(flags);
          for (const std::string& cache : list_or(flags.caches, Setting::kDeviceCache,
                                                  preset != nullptr ? preset->device_cache.name() : "")) {
            HybridRow row{.machine = &machine,
                          .preset = std::string(preset != nullptr ? preset->name : "-"),
                          .batch = batch,
                          .settings = {},
                          .result = {}};
            lab::HybridSettings& settings = row.settings;
            settings.device_cache = find_cache_for(CacheUser::kReplay, cache, Setting::kDeviceCache);
            settings.placement =
                preset != nullptr && flags.placement.empty() ? preset->placement : named.placement;
            set_prefill(named, preset, settings);
            settings.slots = slots;
            set_prefetch(named, preset, flags, header.experts, row);
            settings.workload =
                experts::workload_config(flags.cache_rules.setting(), experts::usual_admit(preset));
            if (!flags.tiers.empty()) settings.tiers = experts::parse_tiers(flags.tiers);
            settings.packed_copies = machine.packed;
            set_slices(request, flags, settings);
            settings.costs = machine.costs;
            if (preset != nullptr) settings.router = preset->router;
            if (!request.router.empty()) settings.router = request.router;
            settings.smoe = request.smoe;
            settings.seed = request.seed;
            rows.push_back(std::move(row));
          }
        }
  return rows;
}

bool is_lossy(const HybridRow& row) { return row.settings.router->lossy; }

void check_hybrid_effects(const HybridRequest& request, const HybridFlags& flags,
                          const std::vector<HybridRow>& rows) {
  std::vector<const experts::CachePolicy*> caches;
  std::set<std::string> routers;
  for (const HybridRow& row : rows) {
    caches.push_back(row.settings.device_cache.row());
    routers.emplace(row.settings.router.name());
  }
  check_device_cache_flags(flags.cache_rules, caches);
  const bool prefetches =
      std::ranges::any_of(rows, [](const HybridRow& row) { return row.settings.prefetch->prefetches; });
  struct Effect {
    Setting setting;
    bool given, acts;
    std::string needs, found;
  };
  std::vector<Effect> all = {
      {Setting::kPrefetchSize, flags.prefetch_size.has_value(), prefetches,
       Setting::kPrefetch + " or a preset that prefetches", "the prefetch none"},
      {Setting::kDeviceKeep, !flags.device_keep.empty(), request.slices.has_value(),
       "experts in slices (" + Setting::kPrecision + ")", "whole experts"},
  };
  const bool follows_smoe = std::ranges::any_of(
      rows, [](const HybridRow& row) { return row.settings.router->rules == experts::RouterRules::kSmoe; });
  for (const Setting setting : request.smoe_flags)
    all.push_back({setting, true, follows_smoe, Setting::kRouter + " smoe",
                   fmt::format("the router {}", fmt::join(routers, ", "))});
  for (const auto& [setting, given, acts, needs, found] : all) {
    if (!given || acts) continue;
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(setting)
        .expected(needs)
        .found(found)
        .fix("give what the flag needs, or leave " + setting + " out");
  }
}

void blame_preset(Error& error, const HybridRow& row, const HybridRequest& request,
                  const HybridFlags& flags) {
  const struct {
    Setting setting;
    const std::string& flag;
    std::string_view policy, kind;
  } all[] = {{Setting::kDeviceCache, flags.caches, row.settings.device_cache.name(), "device cache"},
             {Setting::kPlacement, flags.placement, row.settings.placement.name(), "placement"},
             {Setting::kPrefetch, flags.prefetch, row.settings.prefetch.name(), "prefetch"},
             {Setting::kRouter, request.router, row.settings.router.name(), "router"}};
  for (const auto& [setting, flag, policy, kind] : all)
    if (flag.empty() && error.where() == std::string_view(setting))
      error.in(Setting::kPreset).found(fmt::format("{}, whose {} is {}", row.preset, kind, policy));
}

}  // namespace sluice::app
