// The policies themselves, a row each. Who only asks for policies includes registry.h; who names one in the
// source writes it as a Named (named_policy.h), which is looked up here when it is compiled.
#pragma once

#include <string_view>

#include "experts/cache/cache_policies.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "experts/routing/router_config.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts::rows {

inline constexpr std::string_view kZipMoe = "ZipMoE (arXiv 2601.21198) 5.4; SPEC 1.7";
inline constexpr std::string_view kMoeInfinity = "MoE-Infinity (arXiv 2401.14361); SPEC 1.10";
inline constexpr std::string_view kSliceMoe = "SliceMoE; SPEC 4.3, 4.6";
inline constexpr std::string_view kCacheAware = "SliceMoE, after the works it cites; SPEC 4.5";
inline constexpr std::string_view kSmoe = "SMoE (arXiv 2508.18983) Alg. 1; SPEC 2.2";
inline constexpr std::string_view kSmoeBalance = "SMoE (arXiv 2508.18983) Alg. 2; SPEC 2.5";
inline constexpr std::string_view kDali = "DALI Alg. 2; SPEC 3.5";
inline constexpr std::string_view kDaliSplit = "DALI Alg. 1, appendix A.2; SPEC 3.3";
inline constexpr std::string_view kZipMoeScheduling = "ZipMoE (arXiv 2601.21198) Alg. 1; SPEC 1.5";

inline constexpr CachePolicy kCaches[] = {
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
     .learns_idle = true,
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

inline constexpr RouterPolicy kRouters[] = {
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

inline constexpr PrefetchPolicy kPrefetches[] = {
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
    {.name = "smoe-partial",
     .make = make_smoe_partial_prefetch,
     .source = "SMoE (arXiv 2508.18983) 5.2; SPEC 2.3",
     .predictor = PredictorKind::kPartial},
    {.name = "stat",
     .make = make_stat_prefetch,
     .source = "EdgeMoE; SPEC 3.4",
     .needs = PrefetchNeeds::kTransitions},
    {.name = "random", .make = make_random_prefetch, .source = "DALI, figure 16; SPEC 3.4"},
};

inline constexpr SchedulerPolicy kSchedulers[] = {
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

inline constexpr PlacementPolicy kPlacements[] = {
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
    {.name = "smoe-balance", .make = make_smoe_balance_placement, .source = kSmoeBalance},
    {.name = "smoe-balance-literal", .make = make_smoe_balance_literal_placement, .source = kSmoeBalance},
    {.name = "beam", .make = make_beam_placement, .source = kDaliSplit},
    {.name = "optimal", .make = make_optimal_placement, .source = kDaliSplit},
    {.name = "ratio-prefix", .make = make_ratio_prefix_placement, .source = "ours; SPEC 3.3"},
};

}  // namespace sluice::experts::rows
