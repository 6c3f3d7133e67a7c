// The cache policies' factories and their one configuration. registry.h finds them by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "experts/cache.h"
#include "experts/requests.h"
#include "experts/slice_lru.h"
#include "experts/slice_warmup.h"
#include "experts/zip_pools.h"

namespace sluice::experts {

// Of zip-pools.
struct PoolsConfig {
  std::vector<PoolSlots> slots = {};  // by layer; further layers have the last one's
  PoolRules rules = {};
  std::vector<std::vector<double>> counts = {};  // by layer and expert: offline counts to begin with, or none
  bool whole_only = false;                       // the family has nothing but `full`
  // Where it is known how many layers share the cache, and the largest size of an expert: full slots must
  // fit.
  struct Room {
    std::uint32_t layers = 0;
    ExpertBytes largest = {};
    Bytes capacity = 0;
  };
  std::optional<Room> room = {};

  void validate() const;  // Error(kUsage), (kBudget) if the slots do not fit the room
};

// What of a prompt's experts the first decode step finds (SPEC §4.6).
enum class InitialSlices : std::uint8_t {
  kWarmup,     // what the warm-up predicts
  kEmpty,      // nothing
  kLastLayer,  // what slice-lru has kept of the prompt's events
  kRandom,     // a draw that fills the cache as the warm-up does
};

// Of slice-lru.
struct SlicesConfig {
  SliceLruRules rules = {};
  InitialSlices initial = InitialSlices::kWarmup;
  WarmupRules warmup = {};  // `random` and `seed` are set by `initial` and CacheConfig::seed

  void validate() const;  // Error(kUsage)
};

struct CacheConfig {
  Parts keep = Part::kFull;             // what of a used expert is kept; the family's parts
  std::uint64_t seed = 0;               // of policies that draw
  const RequestList* future = nullptr;  // oracles only: all events to come; must outlive the cache
  PoolsConfig pools = {};               // zip-pools only, which ignores `keep`
  SlicesConfig slices = {};             // slice-lru only, which must keep msb + lsb

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
std::unique_ptr<Cache> make_slice_lru_cache(const CacheConfig& config);

}  // namespace sluice::experts
