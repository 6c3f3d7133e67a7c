#include "experts/registry.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "experts/cache/cache_policies.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/routing/router_config.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {
namespace {

constexpr std::string_view kZipMoe = "ZipMoE (arXiv 2601.21198) 5.4; SPEC 1.7";
constexpr std::string_view kZipMoeBaselines = "ZipMoE (arXiv 2601.21198) 6; SPEC 1.10";
constexpr std::string_view kMoeInfinity = "MoE-Infinity (arXiv 2401.14361); SPEC 1.10";
constexpr std::string_view kSliceMoe = "SliceMoE; SPEC 4.3, 4.6";
constexpr std::string_view kCacheAware = "SliceMoE, after the works it cites; SPEC 4.5";
constexpr std::string_view kSmoe = "SMoE (arXiv 2508.18983) Alg. 1; SPEC 2.2";
constexpr std::string_view kDali = "DALI Alg. 2; SPEC 3.5";
constexpr std::string_view kDaliSplit = "DALI Alg. 1, appendix A.2; SPEC 3.3";
constexpr std::string_view kZipMoeScheduling = "ZipMoE (arXiv 2601.21198) Alg. 1; SPEC 1.5";

constexpr CachePolicy kCaches[] = {
    {.name = "none", .make = make_none_cache, .source = "SPEC 1.10", .keeps = false, .adopts = true},
    {.name = "static", .make = make_static_cache, .source = "SPEC 1.10", .judges_events = true},
    {.name = "fifo", .make = make_fifo_cache, .source = kZipMoe, .adopts = true},
    {.name = "lru", .make = make_lru_cache, .source = kZipMoe, .adopts = true},
    {.name = "lfu", .make = make_lfu_cache, .source = kZipMoe, .adopts = true},
    {.name = "marking",
     .make = make_marking_cache,
     .source = "Fiat et al. 1991; SPEC 1.7",
     .seeded = true,
     .adopts = true},
    {.name = "eam", .make = make_eam_cache, .source = kMoeInfinity, .adopts = true},
    {.name = "belady", .make = make_belady_cache, .source = "Belady 1966; SPEC 1.7", .oracle = true},
    {.name = "belady_bypass",
     .make = make_belady_bypass_cache,
     .source = "Belady 1966; SPEC 1.7",
     .oracle = true,
     .judges_events = true},
    {.name = "zip-pools",
     .make = make_zip_pools_cache,
     .source = kZipMoe,
     .judges_events = true,
     .pooled = true},
    {.name = "slice-lru",
     .make = make_slice_lru_cache,
     .source = kSliceMoe,
     .judges_events = true,
     .sliced = true},
    {.name = "workload-window",
     .make = make_workload_window_cache,
     .source = kDali,
     .judges_events = true,
     .starts = true,
     .windowed = true,
     .swaps = true},
    {.name = "workload-window-unconditional",
     .make = make_workload_window_unconditional_cache,
     .source = kDali,
     .judges_events = true,
     .starts = true,
     .windowed = true,
     .swaps = true},
    {.name = "workload-ema",
     .make = make_workload_ema_cache,
     .source = "ours, after DALI; SPEC 3.5",
     .judges_events = true,
     .starts = true,
     .swaps = true},
    {.name = "hybrimoe",
     .make = make_hybrimoe_cache,
     .source = "HybriMoE (arXiv 2504.05897); SPEC 3.7",
     .scores = CacheScores::kChosen},
    {.name = "d-hybrimoe",
     .make = make_d_hybrimoe_cache,
     .source = "HybriMoE, as DALI has it; SPEC 3.7",
     .scores = CacheScores::kChosen},
    {.name = "score-window",
     .make = make_score_window_cache,
     .source = "SMoE (arXiv 2508.18983) 5.3; SPEC 2.4",
     .starts = true,
     .adopts = true,
     .windowed = true,
     .scores = CacheScores::kAll},
    {.name = "static-layers",
     .make = make_static_layers_cache,
     .source = "SPEC 3.7",
     .keeps = false,
     .judges_events = true,
     .starts = true,
     .whole_layers = true},
    {.name = "static-popular",
     .make = make_static_popular_cache,
     .source = "Fiddler; SPEC 3.7",
     .keeps = false,
     .judges_events = true,
     .starts = true,
     .by_popularity = true},
    {.name = "static-random",
     .make = make_static_random_cache,
     .source = "SMoE's base; SPEC 2.7",
     .keeps = false,
     .judges_events = true,
     .starts = true},
};

constexpr RouterPolicy kRouters[] = {
    {.name = "exact", .make = make_exact_router, .source = "the model's own; SPEC 0"},
    {.name = "cache-prior",
     .make = make_cache_prior_router,
     .source = kCacheAware,
     .lossy = true,
     .rules = RouterRules::kLambda},
    {.name = "cumsum",
     .make = make_cumsum_router,
     .source = kCacheAware,
     .lossy = true,
     .rules = RouterRules::kShare},
    {.name = "smoe",
     .make = make_smoe_router,
     .source = kSmoe,
     .lossy = true,
     .joint = true,
     .rules = RouterRules::kSmoe},
    {.name = "recorded",
     .make = make_recorded_router,
     .source = "ours, for benchmarks",
     .lossy = true,
     .scripted = true},
};

constexpr PrefetchPolicy kPrefetches[] = {
    {.name = "none", .make = make_none_prefetch, .source = "SPEC 5.2", .prefetches = false},
    {.name = "all-next", .make = make_all_next_prefetch, .source = "SPEC 1.10"},
    {.name = "eam", .make = make_eam_prefetch, .source = kMoeInfinity},
    {.name = "stream",
     .make = make_stream_prefetch,
     .source = "ours, after SPEC 2.3",
     .predictor = PredictorKind::kStream,
     .guesses_known = true,
     .alias = "lookahead"},
    {.name = "raw",
     .make = make_raw_prefetch,
     .source = "HybriMoE (arXiv 2504.05897); SPEC 3.4",
     .predictor = PredictorKind::kGateInput},
    {.name = "dali-residual",
     .make = make_dali_residual_prefetch,
     .source = "DALI eq. 10, 11; SPEC 3.4",
     .needs = PrefetchNeeds::kResidual,
     .predictor = PredictorKind::kResidual},
    {.name = "stat",
     .make = make_stat_prefetch,
     .source = "EdgeMoE; SPEC 3.4",
     .needs = PrefetchNeeds::kTransitions},
    {.name = "random", .make = make_random_prefetch, .source = "DALI, figure 16; SPEC 3.4"},
};

constexpr SchedulerPolicy kSchedulers[] = {
    {.name = "serial", .make = make_serial_scheduler, .source = "SPEC 5.2"},
    {.name = "fifo", .make = make_fifo_scheduler, .source = "SPEC 1.5"},
    {.name = "p_sorted", .make = make_p_sorted_scheduler, .source = "SPEC 1.5", .by_costs = true},
    {.name = "zip-affinity",
     .make = make_zip_affinity_scheduler,
     .source = kZipMoeScheduling,
     .by_costs = true},
    {.name = "zip-affinity-literal",
     .make = make_zip_affinity_literal_scheduler,
     .source = kZipMoeScheduling,
     .by_costs = true},
    {.name = "zip-affinity-best-of",
     .make = make_zip_affinity_best_of_scheduler,
     .source = kZipMoeScheduling,
     .by_costs = true},
};

constexpr PlacementPolicy kPlacements[] = {
    {.name = "cpu",
     .make = make_cpu_placement,
     .source = "SPEC 3.7, 5.2",
     .needs_device = false,
     .alias = "host"},
    {.name = "device", .make = make_device_placement, .source = "SPEC 5.2"},
    {.name = "layer-split", .make = make_layer_split_placement, .source = "SPEC 3.7"},
    {.name = "threshold", .make = make_threshold_placement, .source = "SPEC 3.7"},
    {.name = "fiddler", .make = make_fiddler_placement, .source = "Fiddler; SPEC 3.7"},
    {.name = "greedy", .make = make_greedy_placement, .source = kDaliSplit},
    {.name = "two-pointer",
     .make = make_two_pointer_placement,
     .source = "HybriMoE (arXiv 2504.05897); SPEC 10 G10"},
    {.name = "beam", .make = make_beam_placement, .source = kDaliSplit},
    {.name = "optimal", .make = make_optimal_placement, .source = kDaliSplit},
    {.name = "ratio-prefix", .make = make_ratio_prefix_placement, .source = "ours; SPEC 3.3"},
};

// ZipMoE and its baselines: each baseline differs from `zipmoe` in what it is there to show.
constexpr Preset zip_preset(std::string_view name, std::string_view cache,
                            PoolSharing sharing = PoolSharing::kNone) {
  return {.name = name,
          .router = "exact",
          .cache = cache,
          .prefetch = "none",
          .scheduler = "zip-affinity",
          .placement = "cpu",
          .sharing = sharing,
          .source = kZipMoeBaselines};
}

constexpr Preset kPresets[] = {
    {.name = "auto",
     .router = "exact",
     .cache = "lru",
     .prefetch = "none",
     .scheduler = "serial",
     .placement = "cpu",
     .source = "whole experts, of which the least recently used leaves",
     .usual = true},
    zip_preset("zipmoe", "zip-pools", PoolSharing::kPlanned),
    zip_preset("z-C+P", "zip-pools", PoolSharing::kPlanned),
    zip_preset("z-C", "zip-pools", PoolSharing::kEqual),
    zip_preset("z-basic-fifo", "fifo"),
    zip_preset("z-basic-marking", "marking"),
    zip_preset("z-basic-lru", "lru"),
    {.name = "z-accelerate",
     .router = "exact",
     .cache = "static",
     .prefetch = "none",
     .scheduler = "serial",
     .placement = "cpu",
     .source = kZipMoeBaselines,
     .synchronous = true,
     .whole_experts = true},
    {.name = "z-moe-infinity",
     .router = "exact",
     .cache = "eam",
     .prefetch = "eam",
     .scheduler = "serial",
     .placement = "cpu",
     .source = kZipMoeBaselines,
     .whole_experts = true},
    {.name = "z-deepspeed",
     .router = "exact",
     .cache = "none",
     .prefetch = "all-next",
     .scheduler = "serial",
     .placement = "cpu",
     .source = kZipMoeBaselines,
     .whole_layers = true,
     .whole_experts = true},
    {.name = "slicemoe",
     .router = "cache-prior",
     .cache = "slice-lru",
     .prefetch = "none",
     .scheduler = "serial",
     .placement = "cpu",
     .source = "SliceMoE; SPEC 4, 5.2",
     .precision = PrecisionMode::kDbsc,
     .constraint = ConstraintMode::kHard},
};

template <class Policy>
const Policy& find(std::span<const Policy> table, Setting setting, std::string_view name) {
  for (const Policy& policy : table) {
    if (policy.name == name) return policy;
    if constexpr (requires { policy.alias; })
      if (!policy.alias.empty() && policy.alias == name) return policy;
  }
  throw unknown_name(setting, name, names_in(table));
}

}  // namespace

std::span<const CachePolicy> cache_policies() { return kCaches; }
std::span<const RouterPolicy> router_policies() { return kRouters; }
std::span<const PrefetchPolicy> prefetch_policies() { return kPrefetches; }
std::span<const SchedulerPolicy> scheduler_policies() { return kSchedulers; }
std::span<const PlacementPolicy> placement_policies() { return kPlacements; }
std::span<const Preset> presets() { return kPresets; }
const Preset& usual_preset() { return *std::ranges::find_if(kPresets, &Preset::usual); }

const CachePolicy& find_cache(std::string_view name) { return find(cache_policies(), Setting::kCache, name); }
const RouterPolicy& find_router(std::string_view name) {
  return find(router_policies(), Setting::kRouter, name);
}
const PrefetchPolicy& find_prefetch(std::string_view name) {
  return find(prefetch_policies(), Setting::kPrefetch, name);
}
const SchedulerPolicy& find_scheduler(std::string_view name) {
  return find(scheduler_policies(), Setting::kScheduler, name);
}
const PlacementPolicy& find_placement(std::string_view name, Setting asked_by) {
  return find(placement_policies(), asked_by, name);
}
const Preset& find_preset(std::string_view name) { return find(presets(), Setting::kPreset, name); }

void CacheConfig::validate() const {
  if (keep.empty() || !is_legal(keep)) {
    throw Error(ErrorKind::kUsage, "a cache cannot keep this set of parts")
        .in(Setting::kKeep)
        .expected("full, sm, exp, sm + exp, msb or msb + lsb")
        .found("bits " + std::to_string(keep.bits()));
  }
  pools.validate();
  slices.validate();
  workload.validate();
}

void WorkloadConfig::validate() const {
  const auto refuse = [](const char* expected, const std::string& found) {
    throw Error(ErrorKind::kUsage, "a cache cannot follow the work of experts by these rules")
        .in(Setting::kCache)
        .expected(expected)
        .found(found);
  };
  if (window.steps == 0 || score_iterations == 0) refuse("a window of at least one step", "0");
  if (!(ema.gamma >= 0 && ema.gamma < 1))
    refuse("a weight of the past from 0 to below 1", std::to_string(ema.gamma));
  if (!(ema.ratio >= 1)) refuse("a ratio of at least 1", std::to_string(ema.ratio));
}

std::unique_ptr<Cache> make_cache(std::string_view name, const CacheConfig& config) {
  const CachePolicy& policy = find_cache(name);
  config.validate();
  if (policy.oracle && config.future == nullptr) {
    throw Error(ErrorKind::kUsage, std::string(name) + " must know all requests beforehand")
        .in(Setting::kCache)
        .expected("a cache that does not know the future")
        .found(name)
        .fix("use it in a replay: sluice lab evict");
  }
  return policy.make(config);
}

}  // namespace sluice::experts
