#include "engine/plan/policy_plan.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "base/setting.h"
#include "engine/plan/gate_residual.h"
#include "experts/combination.h"
#include "experts/device_caches.h"
#include "experts/routing/routing_script.h"
#include "experts/routing/slice_names.h"

namespace sluice::engine {
namespace {

using experts::PrecisionMode;

// Ours, where a device is given and nothing else: both follow the measured costs and the work of experts.
constexpr experts::Named<experts::PlacementPolicy> kDevicePlacement = "ratio-prefix";
constexpr experts::Named<experts::CachePolicy> kDeviceCache = "workload-ema";
// This cache takes back what leaves a device, so that each tier can exclude the other.
constexpr experts::Named<experts::CachePolicy> kHostCacheBesideDevice = "lru";

// A preset that is not named after a paper takes the best predictor that has been measured; where there is no
// residual, that is the next router.
bool does_without_residual(const experts::DevicePreset& preset) {
  return preset.guards_prefetch && preset.prefetch->needs == experts::PrefetchNeeds::kResidual;
}

// The preset for a device that is asked for; null: none is.
const experts::DevicePreset* device_preset_of(const EngineOptions& options) {
  const experts::DevicePreset* const preset = options.preset.device();
  if (preset == nullptr) return nullptr;
  if (!options.has_device())
    throw Error(ErrorKind::kUsage, "this preset is for a device beside the host, and there is none")
        .in(Setting::kPreset)
        .expected(Setting::kDevice + " cuda or emulated beside it, or another preset")
        .found(preset->name)
        .fix("add " + Setting::kDevice +
             (options.device_lack.empty() ? " cuda or emulated"
                                          : " emulated; there is no other: " + options.device_lack));
  const experts::PrefetchNeeds needs = preset->prefetch->needs;
  const bool by_residual = needs == experts::PrefetchNeeds::kResidual;
  const bool known = needs == experts::PrefetchNeeds::kNothing ||
                     (by_residual && (options.residual || does_without_residual(*preset)));
  if (options.prefetch.empty() && !known)
    throw Error(ErrorKind::kUsage, fmt::format("{} reads ahead by {}, which must know another text",
                                               preset->name, preset->prefetch.name()))
        .in(Setting::kPreset)
        .expected(Setting::kPrefetch + " none beside it")
        .found("none given")
        .fix("add " + Setting::kPrefetch + " none" +
             (by_residual ? ", or " + Setting::kResidual + " FILE, which sluice calibrate measures" : ""));
  return preset;
}

// The parts that a device adds.
void choose_device(const EngineOptions& options, const experts::DevicePreset* preset, PolicyPlan& plan) {
  plan.device_preset = preset;
  plan.device_cache = &options.device_cache.or_usual(preset != nullptr ? preset->device_cache : kDeviceCache);
  if (plan.device_cache->by_popularity && options.popularity_name.empty())
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the cache {} keeps the experts that are used most on the device, and nobody has said "
                    "which these are",
                    plan.device_cache->name))
        .in(options.device_cache.empty() ? Setting::kPreset : Setting::kDeviceCache)
        .expected(Setting::kRanksOf + " FILE beside it: recorded routing of another text")
        .found("none")
        .fix("record it (sluice trace MODEL), or use another " +
             (options.device_cache.empty() ? Setting::kPreset : Setting::kDeviceCache));
  plan.device_cache_rules =
      experts::workload_config(options.device_cache_rules, experts::usual_admit(preset));
  plan.device_may_rest = preset == nullptr && options.device_cache.empty() && options.placement.empty() &&
                         options.placement_prefill.empty();
  const experts::PrefillPlacement prefill =
      experts::prefill_placement(preset, options.placement.row(), options.placement_prefill.row());
  plan.prefill_placement = prefill.policy;
  plan.prefill_from = prefill.from;
}

}  // namespace

std::string PolicyPlan::placement_text() const {
  if (prefill_placement == nullptr) return std::string(placement->name);
  const std::string from = prefill_from > 1 ? fmt::format(" of {} tokens or more", prefill_from) : "";
  return fmt::format("{} ({} in prompts{})", placement->name, prefill_placement->name, from);
}

bool PolicyPlan::decodes_otherwise() const {
  return precision.mode == PrecisionMode::kDbsc || precision.mode == PrecisionMode::kLow || router->lossy;
}

bool PolicyPlan::depends_on_memory() const {
  return (router->lossy && !router->scripted) || precision.mode == PrecisionMode::kDbsc ||
         limits.mode != experts::ConstraintMode::kNone;
}

std::string PolicyPlan::played() const { return script ? "recorded from " + script->source() : ""; }

PolicyPlan choose_policies(const EngineOptions& options, bool packed_states, bool sliced) {
  const experts::DevicePreset* const of_device = device_preset_of(options);
  const bool chosen = !options.preset.host().usual;
  const bool pools = !chosen && packed_states && options.keep.value_or(Keep::kFull) == Keep::kFull;
  const experts::Preset& preset = pools ? experts::NamedPreset("zipmoe-plus").host() : options.preset.host();
  PolicyPlan plan;
  plan.preset = &preset;
  plan.precision = {options.precision == PrecisionMode::kFull ? preset.precision : options.precision,
                    options.critical};
  const PrecisionMode precision = plan.precision.mode;
  plan.router = &options.router.or_usual(of_device ? of_device->router : preset.router);
  const bool device = options.has_device();
  const experts::CachePolicy& whole = device && preset.usual ? *kHostCacheBesideDevice : *preset.cache;
  plan.cache = &options.cache.or_usual(sliced ? experts::usual_slice_cache(precision) : whole);
  plan.learns_unasked = options.cache.empty() && !chosen && plan.cache->bytes_of_layer != nullptr;
  // Where the user chose nothing, prefetching uses the disk's idle time. Exceptions: a preset runs as its
  // paper compares it; a recorded run is counted as a replay counts it, which has no notion of time;
  // missing slices that other experts would replace are not worth reading; and the model's routers predict
  // nothing about routing that is played.
  const bool replaced = (sliced && plan.router->lossy) || plan.router->scripted;
  const bool idle = chosen || options.recording > 0 || replaced;
  plan.prefetch_is_free = options.prefetch.empty() && of_device == nullptr && !idle;
  plan.residual = options.residual;
  plan.prefetch_by_calibration =
      plan.prefetch_is_free && options.residual && options.residual->better_than_stream();
  experts::Named<experts::PrefetchPolicy> usual = "stream";
  if (of_device && !options.residual && does_without_residual(*of_device))
    usual = "stream";
  else if (of_device)
    usual = of_device->prefetch;
  else if (idle)
    usual = preset.prefetch;
  else if (plan.prefetch_by_calibration)
    usual = "dali-residual";
  plan.prefetch = &options.prefetch.or_usual(usual);
  plan.scheduler = &options.scheduler.or_usual(preset.scheduler);
  plan.placement = &options.placement.or_usual(of_device ? of_device->placement
                                               : device  ? kDevicePlacement
                                                         : preset.placement);
  if (device) choose_device(options, of_device, plan);
  plan.tiers = options.tiers;
  plan.limits = options.limits;
  plan.limits.mode = options.constraint.value_or(preset.constraint);
  if (plan.limits.mode != experts::ConstraintMode::kHard) plan.limits.lambda = options.cache_aware.lambda;
  if (options.contract) plan.limits.lambda = 0;  // the guard is not asked about routing that lambda changes
  plan.limits.top_j = options.cache_aware.top_j;
  plan.cache_aware = options.cache_aware;
  plan.smoe = options.smoe;
  plan.slices = options.slices;
  plan.slices.warmup.rho = options.rho.value_or(experts::usual_rho(precision));
  plan.contract = options.contract;
  plan.routing_losses = options.routing_losses;
  plan.script = options.script;
  return plan;
}

PolicyPlan choose_policies(const EngineOptions& options) {
  const bool sliced = options.precision != PrecisionMode::kFull || options.preset.host().sliced();
  return choose_policies(options, false, sliced);
}

void check_policies(const PolicyPlan& policies, experts::Family family) {
  const experts::Named<experts::RouterPolicy> routers[] = {policies.router};
  experts::check_combination({.family = family,
                              .routers = routers,
                              .cache = policies.cache,
                              .precision = policies.precision.mode,
                              .constraint = policies.limits.mode,
                              .scheduler = policies.scheduler,
                              .prefetch = policies.prefetch,
                              .whole_layers = policies.preset->whole_layers,
                              .slices = &policies.slices,
                              .loss_limited = policies.contract.has_value(),
                              .placement = policies.placement,
                              .device_cache = policies.device_cache,
                              .tiers = policies.tiers.value_or(experts::Tiers::kInclusive),
                              .residual = policies.residual != nullptr});
}

}  // namespace sluice::engine
