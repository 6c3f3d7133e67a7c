// The cache policies' factories and their one configuration. registry.h finds them by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/cache/pool_rules.h"
#include "experts/cache/score_window.h"
#include "experts/cache/slice_rules.h"
#include "experts/cache/workload/workload_ema.h"
#include "experts/cache/workload/workload_window.h"
#include "experts/core/pools.h"
#include "experts/core/tier.h"

namespace sluice::experts {

class RequestList;  // experts/core/requests.h

// Configuration of zip-pools.
struct PoolsConfig {
  std::vector<PoolSlots> slots = {};  // by layer; layers beyond the list use its last entry
  PoolRules rules = {};
  // Offline counts to begin with, by layer and expert; empty: no counts.
  std::vector<std::vector<double>> counts = {};
  bool whole_only = false;  // the family has no part but `full`
  // Set where the number of layers that share the cache and the largest size of an expert are known: full
  // slots must fit.
  struct Room {
    std::uint32_t layers = 0;
    ExpertBytes largest = {};
    Bytes capacity = 0;
  };
  std::optional<Room> room = {};

  void validate() const;  // Error(kUsage), (kBudget) if the slots do not fit the room
};

// The layers that a cache decides about, for caches that must know them before the first event.
struct CachedLayers {
  std::uint32_t first = 0, layers = 0, experts = 0;  // `layers` of `experts` each, from the layer `first` on
  std::vector<std::uint8_t> left_out = {};           // 1: of that layer none is kept; empty: none is left out
  bool leaves_out(std::uint32_t layer) const { return !left_out.empty() && left_out[layer] != 0; }
};

// Configuration of the caches that follow the work of experts.
struct WorkloadConfig {
  WindowRules window = {};  // for workload-window; its `unconditional` is the policy's
  EmaRules ema = {};        // for workload-ema
  std::uint32_t top_k = 0;  // for hybrimoe and d-hybrimoe: experts of a token
  std::uint32_t score_iterations = ScoreWindow::kIterations;  // for score-window
  Admit admit = Admit::kLoaded;                               // for score-window, on a device
  // For static-popular: how often an expert was used by a calibration text, by layer and expert.
  std::vector<std::vector<double>> popularity = {};

  void validate() const;  // Error(kUsage)
};

struct CacheConfig {
  Parts keep = Part::kFull;             // parts of a used expert to keep; parts of the family
  std::uint64_t seed = 0;               // for policies that draw
  const RequestList* future = nullptr;  // for oracles only: all events to come; must outlive the cache
  PoolsConfig pools = {};               // for zip-pools only, which ignores `keep`
  SlicesConfig slices = {};             // for slice-lru only, which must keep msb + lsb
  CachedLayers layers = {};             // none: caches that start with experts start empty
  WorkloadConfig workload = {};

  void validate() const;  // Error(kUsage)
};

std::unique_ptr<Cache> make_none_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_static_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_fifo_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_lru_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_lfu_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_marking_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_eam_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_belady_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_belady_bypass_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_zip_pools_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_zip_reuse_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_slice_lru_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_reuse_cache(const CacheConfig& config);
Bytes reuse_bytes_of_layer(std::size_t experts);  // CachePolicy::bytes_of_layer
// cache_workload.cc
std::unique_ptr<Cache> make_workload_window_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_workload_window_unconditional_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_workload_ema_cache(const CacheConfig& config);
// cache_score_average.cc
std::unique_ptr<Cache> make_hybrimoe_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_d_hybrimoe_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_score_window_cache(const CacheConfig& config);
// cache_static.cc
std::unique_ptr<Cache> make_static_layers_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_static_popular_cache(const CacheConfig& config);
std::unique_ptr<Cache> make_static_random_cache(const CacheConfig& config);

}  // namespace sluice::experts
