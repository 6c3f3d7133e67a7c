#include "experts/decision_log.h"

#include <fmt/format.h>

#include <bit>

#include "base/append_format.h"
#include "base/error.h"
#include "base/splitmix64.h"
#include "experts/routing/slice_names.h"

namespace sluice::experts {

std::string_view parts_name(Parts parts) {
  if (parts.empty()) return "-";
  if (parts == Part::kFull) return "full";
  if (parts == Part::kSm) return "sm";
  if (parts == Part::kExp) return "exp";
  if (parts == (Part::kSm | Part::kExp)) return "sm+exp";
  if (parts == Part::kMsb) return "msb";
  if (parts == Part::kLsb) return "lsb";
  if (parts == (Part::kMsb | Part::kLsb)) return "msb+lsb";
  return "mixed";
}

namespace {

std::string slice_setting_text(const SliceSetting& setting) {
  const CriticalRule& critical = setting.precision.critical;
  std::string text = fmt::format(" precision={}", precision_name(setting.precision.mode));
  if (setting.precision.mode == PrecisionMode::kDbsc)
    text += critical.kind == CriticalRule::Kind::kFixedTopC
                ? fmt::format(" critical=fixed_top_c,{}", critical.count)
                : fmt::format(" critical={},{}",
                              critical.kind == CriticalRule::Kind::kSingleHead ? "single-head" : "rel_top1",
                              critical.theta);
  text += fmt::format(" lsb_miss={} lsb_reserve={} warmup={} kappa={} rho={}",
                      lsb_miss_name(setting.cache.rules.lsb_miss), setting.cache.rules.lsb_reserve,
                      initial_slices_name(setting.cache.initial), setting.cache.warmup.kappa,
                      setting.cache.warmup.rho);
  const ConstraintMode mode = setting.limits.mode;
  text += fmt::format(" constraint={}", constraint_name(mode));
  if (mode == ConstraintMode::kAdaptive || mode == ConstraintMode::kHard)
    text += fmt::format(" miss_rate={}", setting.limits.limit);
  return text;
}

std::string device_setting_text(const DecisionSetting::Device& device) {
  std::string text =
      fmt::format(" device_cache={} device_scope={} device_capacity={} placement={} slots={} buffers={}",
                  device.cache, device.scope, device.capacity, device.placement,
                  device.slots ? fmt::format("{}", *device.slots) : "any",
                  device.buffers == kAnyBuffers ? "any" : fmt::format("{}", device.buffers));
  if (!device.prefill.empty())
    text += fmt::format(" prefill={} prefill_from={}", device.prefill, device.prefill_from);
  if (!device.prefetch.empty())
    text += fmt::format(" device_prefetch={},{}{}", device.prefetch, device.prefetch_size,
                        device.guarded ? ",guarded" : "");
  if (device.tiers != Tiers::kInclusive) text += fmt::format(" tiers={}", tiers_name(device.tiers));
  if (!device.slices.empty()) text += fmt::format(" device_slices={}", parts_name(device.slices));
  return text + fmt::format(" profile={:016x}", device.profile);
}

std::string_view view_mark(Parts view) {
  if (view.empty()) return "";
  return view.has(Part::kLsb) ? ":high" : ":low";
}

// Then `mark` is a comma.
void append_gone(std::string& log, const char*& mark, const Eviction& gone) {
  append_format(log, "{}{}/{}={}", mark, gone.id.layer, gone.id.index, parts_name(gone.parts));
  mark = ",";
}

void append_updates(std::string& log, const char* mark, std::span<const DeviceUpdate> updates) {
  for (const DeviceUpdate& update : updates) {
    append_format(log, "{}{}/{}", mark, update.id.layer, update.id.index);
    mark = ",";
  }
}

}  // namespace

std::string slots_text(const PoolSlots& slots) {
  return fmt::format("{},{},{},{}", slots.f, slots.c, slots.s, slots.e);
}

std::string decision_heading(const DecisionSetting& setting) {
  std::string rules;
  if (setting.pools)
    rules = fmt::format(" pools={} delta={} demote={} half_life={}", slots_text(*setting.pools),
                        setting.rules.delta, demotion_name(setting.rules.demotion), setting.rules.half_life);
  if (setting.slices) rules += slice_setting_text(*setting.slices);
  if (!setting.routing.empty()) rules += " routing=" + setting.routing;
  if (setting.device) rules += device_setting_text(*setting.device);
  return fmt::format("# sluice decisions v1 cache={} scope={} capacity={} keep={} seed={}{}\n", setting.cache,
                     setting.scope, setting.capacity,
                     setting.keep == Parts(Part::kFull) ? "full"
                     : setting.keep.has(Part::kMsb)     ? "slices"
                                                        : "packed",
                     setting.seed, rules);
}

std::optional<DecisionSetting::Device> device_setting(const LayerPolicies& policies) {
  if (!policies.device) return std::nullopt;
  const DevicePolicies& device = *policies.device;
  const bool by_layer = device.residencies.size() > 1;
  DecisionSetting::Device setting{.cache = device.residencies.front()->cache().name(),
                                  .placement = policies.placement->name(),
                                  .scope = by_layer ? "layer" : "global",
                                  .capacity = device.residencies.front()->capacity(),
                                  .slots = device.slots,
                                  .buffers = device.buffers,
                                  .profile = hash_of(policies.costs),
                                  .tiers = device.tiers};
  if (device.prefill_placement) {
    setting.prefill = device.prefill_placement->name();
    setting.prefill_from = device.prefill_from;
  }
  if (device.prefetch) {
    setting.prefetch = device.prefetch->name();
    setting.prefetch_size = device.prefetch_size;
    setting.guarded = device.guards_prefetch;
  }
  if (device.slices) setting.slices = device.slices->room;
  return setting;
}

void append_decision(std::string& log, std::uint64_t event, std::uint32_t layer,
                     const EventOutcome& outcome) {
  append_format(log, "{} {}", event, layer);
  const char* mark = " hit ";
  for (const Admission& hit : outcome.hits) {
    append_format(log, "{}{}", mark, hit.id.index);
    if (hit.before != hit.parts) append_format(log, "={}>{}", parts_name(hit.before), parts_name(hit.parts));
    log += view_mark(hit.view);
    mark = ",";
  }
  mark = " miss ";
  for (const Admission& miss : outcome.misses) {
    append_format(log, "{}{}=", mark, miss.id.index);
    if (!miss.before.empty()) append_format(log, "{}>", parts_name(miss.before));
    append_format(log, "{}{}", parts_name(miss.parts), view_mark(miss.view));
    mark = ",";
  }
  const std::size_t given_end = outcome.trimmed + outcome.given;
  mark = " give ";
  for (std::size_t i = outcome.trimmed; i < given_end; ++i) append_gone(log, mark, outcome.evicted[i]);
  mark = " out ";
  for (std::size_t i = 0; i < outcome.evicted.size(); ++i)
    if (i < outcome.trimmed || i >= given_end) append_gone(log, mark, outcome.evicted[i]);
  mark = " reduce ";
  for (ExpertId id : outcome.reduced) {
    append_format(log, "{}{}/{}={}", mark, id.layer, id.index, parts_name(Part::kSm));
    mark = ",";
  }
  mark = " update ";
  for (const Update& update : outcome.updates) {
    append_format(log, "{}{}/{}={}", mark, update.id.layer, update.id.index, parts_name(update.parts));
    mark = ",";
  }
  mark = " adopt ";
  for (const Placed& one : outcome.adopted) {
    append_format(log, "{}{}/{}={}", mark, one.id.layer, one.id.index, parts_name(one.parts));
    mark = ",";
  }
  log += '\n';
}

void append_decision(std::string& log, std::uint64_t event, std::uint32_t layer,
                     const LayerDecision& decision) {
  append_decision(log, event, layer, *decision.outcome);
  if (decision.device == nullptr) return;
  log.pop_back();
  const char* mark = " device ";
  for (const DeviceUse& use : decision.device->uses) {
    append_format(log, "{}{}{}{}", mark, use.id.index,
                  use.from == DeviceBytes::kSlot       ? ""
                  : use.from == DeviceBytes::kPrefetch ? "*"
                  : use.stays                          ? "+"
                                                       : "-",
                  view_mark(use.view));
    mark = ",";
  }
  mark = " drop ";
  for (const Eviction& gone : decision.device->evicted) {
    append_format(log, "{}{}/{}", mark, gone.id.layer, gone.id.index);
    mark = ",";
  }
  append_updates(log, " bring ", decision.device->updates);
  log += '\n';
}

void append_start(std::string& log, std::span<const DeviceUpdate> start) {
  if (start.empty()) return;
  append_updates(log, "start ", start);
  log += '\n';
}

std::uint64_t hash_of(const ExpertCosts& costs) {
  std::uint64_t hash = 0;
  const auto add = [&](double value) {
    hash = splitmix64_mixed((hash ^ std::bit_cast<std::uint64_t>(value)) + kSplitMix64Step);
  };
  const auto add_time = [&](const ComputeTime& time) {
    add(time.fixed);
    add(time.per_token);
    for (const auto& [tokens, value] : time.measured) {
      add(tokens);
      add(value);
    }
  };
  add_time(costs.run);
  const DeviceCosts& device = costs.device;
  for (const ComputeTime* time : {&device.run, &device.shared, &device.gate}) add_time(*time);
  for (const double value : {device.transfer, device.sync, device.policy, device.launch, device.predict,
                             device.stream_switch, device.row})
    add(value);
  if (!device.full_duplex) add(1);
  if (device.in_place) add(2);
  if (device.msb > 0)
    for (const double share : {device.msb, device.lsb}) add(share);
  return hash;
}

std::string decision_ending(std::uint64_t hash) { return fmt::format("# hash {:016x}\n", hash); }

std::uint64_t decision_hash(std::span<const std::unique_ptr<Residency>> caches) {
  std::uint64_t hash = 0;
  for (const auto& cache : caches) hash = hash * 0x9e3779b97f4a7c15ull + cache->decision_hash();
  return hash;
}

std::uint64_t decision_hash(const LayerPolicies& policies) {
  const std::uint64_t host = decision_hash(policies.residencies);
  return policies.device
             ? splitmix64_mixed(host + kSplitMix64Step) ^ decision_hash(policies.device->residencies)
             : host;
}

}  // namespace sluice::experts
