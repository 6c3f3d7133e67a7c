#include "experts/combination.h"

#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "experts/routing/slice_names.h"

namespace sluice::experts {
namespace {

[[noreturn]] void refuse(const char* why, Setting setting, const std::string& expected,
                         const std::string& found, const std::string& fix) {
  throw Error(ErrorKind::kUsage, why).in(setting).expected(expected).found(found).fix(fix);
}

// A limit on the loss holds only where the guard is asked before anything is changed.
// `rule` is the router that changes the selection; null if the selection is the model's own.
void check_loss_limit(const Combination& combination, const RouterPolicy* rule) {
  if (combination.family != Family::kSliced) {
    if (rule == nullptr || rule->rules == RouterRules::kSmoe) return;
    refuse("without slices, a limit on the loss counts the experts that the router smoe replaces",
           Setting::kRouter, "smoe", std::string(rule->name), "leave " + Setting::kRouter + " out");
  }
  const bool asks = rule == nullptr || rule->rules == RouterRules::kSmoe ||
                    (rule->rules == RouterRules::kLambda && combination.constraint == ConstraintMode::kHard);
  if (!asks) {
    refuse(
        "a limit on the loss counts replaced experts, and only smoe, and cache-prior under the constraint "
        "hard, ask it first",
        Setting::kRouter, "exact, smoe, or cache-prior under the constraint hard", std::string(rule->name),
        "leave " + Setting::kRouter + " and " + Setting::kConstraint + " out");
  }
  if (combination.slices != nullptr && combination.slices->rules.lsb_miss != LsbMiss::kFetch &&
      combination.precision != PrecisionMode::kLow) {
    refuse(
        "a limit on the loss decides which experts are computed at low precision, so no LSB slice may be "
        "skipped",
        Setting::kLsbMiss, "fetch", std::string(lsb_miss_name(combination.slices->rules.lsb_miss)),
        "leave " + Setting::kLsbMiss + " out");
  }
}

// What a device computes with is decided before the host's memory is asked, and does not depend on it.
void check_slices_on_device(const Combination& combination) {
  if (combination.constraint != ConstraintMode::kNone)
    refuse("a limit on misses counts what the host reads, and a device computes with slices that it has",
           Setting::kConstraint, "none beside " + Setting::kDevice,
           std::string(constraint_name(combination.constraint)),
           "give " + Setting::kConstraint + " none, or leave " + Setting::kDevice + " out");
  const bool skips = combination.slices != nullptr && combination.slices->rules.lsb_miss == LsbMiss::kSkip;
  if (skips && combination.precision != PrecisionMode::kLow)
    refuse("a device computes with the slices that are asked for, so no LSB slice may be skipped",
           Setting::kLsbMiss, "fetch beside " + Setting::kDevice, "skip",
           "leave " + Setting::kLsbMiss + " or " + Setting::kDevice + " out");
}

void check_device(const Combination& combination) {
  const bool has_device = !combination.device_cache.empty();
  if (!has_device && !combination.placement.empty() && combination.placement->needs_device) {
    refuse("this placement computes experts on a device, and there is none", Setting::kPlacement,
           "cpu, or " + Setting::kDevice + " beside it", std::string(combination.placement.name()),
           "use the placement cpu, or add " + Setting::kDevice + " cuda or emulated");
  }
  if (!has_device) return;
  const CachePolicy& cache = *combination.device_cache;
  if (combination.family == Family::kSliced) check_slices_on_device(combination);
  if (cache.pooled || cache.sliced) {
    refuse("a device's cache holds whole experts, neither pools nor slices", Setting::kDeviceCache,
           "a cache of whole experts", std::string(cache.name), "use the cache workload-ema on the device");
  }
  if (combination.whole_layers) {
    refuse("this preset fetches whole layers to the host, whatever a device computes", Setting::kPreset,
           "a preset that fetches single experts", "z-deepspeed", "use another preset");
  }
}

void check_tiers(const Combination& combination, const CachePolicy& cache) {
  if (combination.tiers != Tiers::kExclusive) return;
  if (combination.device_cache.empty())
    refuse("tiers exclude each other where there are two, and there is no device", Setting::kTiers,
           "inclusive, or " + Setting::kDevice + " beside it", "exclusive",
           "leave it out, or add " + Setting::kDevice + " cuda or emulated");
  if (combination.family == Family::kSliced)
    refuse("experts in slices do not come back from a device", Setting::kTiers, "inclusive", "exclusive",
           "leave it out");
  if (cache.adopts) return;
  refuse(
      "this cache decides on whole events, or on parts of experts, and can take in nothing that leaves a "
      "device",
      Setting::kCache, "a cache that takes back single experts", std::string(cache.name),
      "use the cache lru with " + Setting::kTiers + " exclusive, or " + Setting::kTiers + " inclusive");
}

// `prefetch` may be that of the host or of a device.
void check_prefetch(const Combination& combination) {
  if (combination.prefetch.empty()) return;
  const PrefetchPolicy& prefetch = *combination.prefetch;
  const std::string name(prefetch.name);
  if (prefetch.needs == PrefetchNeeds::kResidual && !combination.residual)
    refuse("this prefetch adds to gate inputs what they differ by on the average, which nothing has measured",
           Setting::kPrefetch, Setting::kResidual + ", or a store with a residual of its own", name,
           "measure it (sluice calibrate MODEL " + flag(Setting::kResidual) + " " + flag(Setting::kFile) +
               " TEXT), or use the prefetch stream or raw");
  if (prefetch.needs == PrefetchNeeds::kTransitions && !combination.transitions)
    refuse("this prefetch must know which experts follow which, which nothing has counted",
           Setting::kPrefetch, "what follows which, counted in recorded routing", name,
           "use the prefetch stream or raw");
}

}  // namespace

void check_combination(const Combination& combination) {
  const bool sliced = combination.family == Family::kSliced;
  const CachePolicy& cache = *combination.cache;
  const std::string cache_name(cache.name);
  check_device(combination);
  check_tiers(combination, cache);
  check_prefetch(combination);
  if (sliced && cache.pooled) {
    refuse("the pools of this cache hold whole or compressed experts, and this model's experts are in slices",
           Setting::kCache, "a cache of slices or of whole experts", cache_name,
           "use the cache slice-lru, or a model packed without slices");
  }
  if (!sliced && cache.sliced) {
    refuse("this cache holds slices of experts, and this model has no slices", Setting::kCache,
           "a cache of whole experts, or a store of family sliced", cache_name,
           "use the cache lru, or pack the model in slices");
  }
  if (!sliced && combination.precision != PrecisionMode::kFull) {
    refuse("only experts in slices have two precisions", Setting::kPrecision, "a store of family sliced",
           "a model without slices", "pack the model in slices, or leave " + Setting::kPrecision + " out");
  }
  if (sliced && combination.precision == PrecisionMode::kFull) {
    refuse("experts in slices are computed at high or low precision", Setting::kPrecision,
           "high, low or dbsc", "full", "use dbsc, high or low");
  }
  if (combination.precision == PrecisionMode::kDbsc && !cache.sliced) {
    refuse("the precision dbsc needs a cache that holds MSB and LSB slices separately", Setting::kCache,
           "slice-lru", cache_name, "use the cache slice-lru, or the precision high or low");
  }
  if (sliced && !combination.scheduler.empty() && combination.scheduler->by_costs) {
    refuse("this scheduler plans how planes and exponents are read and decoded, and slices need no decoding",
           Setting::kScheduler, "serial or fifo", std::string(combination.scheduler.name()),
           "use the scheduler serial or fifo");
  }
  if (sliced && combination.whole_layers) {
    refuse("this preset fetches whole layers of whole experts, and this model's experts are in slices",
           Setting::kPreset, "a preset that fetches single experts", "z-deepspeed",
           "use the preset slicemoe, or none");
  }
  if (combination.precision == PrecisionMode::kLow && cache.sliced && combination.slices != nullptr) {
    const SlicesConfig& slices = *combination.slices;
    if (slices.warmup.rho != 0) {
      refuse("at low precision no LSB slice may outlive the prompt: decode steps would compute with it",
             Setting::kRho, "0", std::to_string(slices.warmup.rho),
             "leave " + Setting::kRho + " out, or use dbsc");
    }
    if (slices.initial == InitialSlices::kLastLayer) {
      refuse("at low precision no LSB slice may outlive the prompt, and last-layer keeps LSB slices",
             Setting::kWarmup, "pcw, empty or random", "last-layer", "use the warm-up pcw, empty or random");
    }
  }

  const RouterPolicy* rule = nullptr;  // the router that changes the selection
  for (const Named<RouterPolicy>& named : combination.routers) {
    const RouterPolicy& router = *named;
    if (!router.lossy) continue;
    if (rule != nullptr && rule != &router) {
      refuse("a run can have only one selection rule", Setting::kRouter,
             "one router that changes the selection",
             std::string(rule->name) + " and " + std::string(router.name), "choose one");
    }
    rule = &router;
  }
  const bool limited = combination.constraint != ConstraintMode::kNone;
  if (limited && rule == nullptr) {
    refuse("a limit on misses replaces experts, which the router exact does not allow", Setting::kConstraint,
           "none, or a router that replaces experts", std::string(constraint_name(combination.constraint)),
           "add " + Setting::kRouter + " cache-prior, or give " + Setting::kConstraint + " none");
  }
  if (limited && rule->scripted) {
    refuse("a limit on misses changes the selection, which the router recorded does not allow",
           Setting::kRouter, "a router that replaces experts", std::string(rule->name),
           "use the router cache-prior, or no limit");
  }
  if (limited && rule->rules == RouterRules::kSmoe) {
    refuse("a limit on misses and the router smoe both replace experts", Setting::kConstraint,
           "none, or another router", std::string(constraint_name(combination.constraint)),
           "use the router cache-prior, or give " + Setting::kConstraint + " none");
  }
  if (combination.loss_limited) check_loss_limit(combination, rule);
  const bool by_lambda =
      combination.constraint == ConstraintMode::kBoost || combination.constraint == ConstraintMode::kAdaptive;
  if (by_lambda && rule->rules != RouterRules::kLambda) {
    refuse("this constraint works by lambda, which only cache-prior has", Setting::kRouter, "cache-prior",
           std::string(rule->name), "use the router cache-prior, or the constraint hard");
  }
}

}  // namespace sluice::experts
