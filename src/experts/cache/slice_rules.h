// The configuration of slice-lru: of its queues (slices/slice_lru.h) and of its warm-up
// (slices/slice_warmup.h).
#pragma once

#include <cstdint>

namespace sluice::experts {

enum class LsbMiss : std::uint8_t {
  kFetch,          // always reads the LSB
  kSkip,           // never reads it: the expert is computed at low precision
  kFetchIfBudget,  // reads it as far as SliceDemand::lsb_allowance goes
};

struct SliceLruRules {
  LsbMiss lsb_miss = LsbMiss::kFetchIfBudget;
  // Share of the capacity that MSBs leave to LSBs. Only LSBs beyond it are evicted to make room for an MSB.
  double lsb_reserve = 0;

  void validate() const;  // Error(kUsage)
};

struct WarmupRules {
  double kappa = 0.5;  // LSBs that are critical for a smaller share of their expert's tokens leave first
  double rho = 0.5;    // at most so many LSBs per MSB; 0: no LSB outlives the prompt
  // A baseline: experts are judged by a random draw instead of by their counts.
  bool random = false;
  std::uint64_t seed = 0;

  void validate() const;  // Error(kUsage)
};

// Which slices of a prompt's experts the first decode step finds (SPEC §4.6).
enum class InitialSlices : std::uint8_t {
  kWarmup,     // those that the warm-up predicts
  kEmpty,      // none
  kLastLayer,  // those that slice-lru has kept of the prompt's events
  kRandom,     // a random draw that fills the cache as the warm-up does
};

// Configuration of slice-lru.
struct SlicesConfig {
  SliceLruRules rules = {};
  InitialSlices initial = InitialSlices::kWarmup;
  WarmupRules warmup = {};  // `random` and `seed` are set by `initial` and CacheConfig::seed

  void validate() const;  // Error(kUsage)
};

}  // namespace sluice::experts
