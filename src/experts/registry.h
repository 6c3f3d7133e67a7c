// Every policy of every kind, by its name on the command line: one line each in registry_rows.h. Tests go
// through these tables, so that every policy is tested for the properties of its kind. The tables are
// constant: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/setting.h"

namespace sluice::experts {

class Cache;                              // cache/cache.h
struct CacheConfig;                       // cache/cache_policies.h
class Placement;                          // placement/placement.h
class Prefetch;                           // prefetch/prefetch.h
enum class PredictorKind : std::uint8_t;  // prefetch/prefetch.h
struct PrefetchConfig;                    // prefetch/prefetch.h
class Router;                             // routing/router.h
struct RouterConfig;                      // routing/router_config.h
class Scheduler;                          // schedule/scheduler.h

// Which of the router's scores a cache goes by; without them it would be another policy.
enum class CacheScores : std::uint8_t {
  kNone,
  kChosen,  // for the chosen experts at least: recorded weights will do
  kAll,     // for all experts of a layer
};

struct CachePolicy {
  std::string_view name;
  std::unique_ptr<Cache> (*make)(const CacheConfig&);
  std::string_view source;     // paper and section
  bool oracle = false;         // reads the future: replays only
  bool seeded = false;         // draws, from CacheConfig::seed
  bool keeps = true;           // keeps experts that fit, once they are used
  bool judges_events = false;  // may evict experts of the running event (Cache::decide_event)
  // Holds experts in the states that CacheConfig::pools has slots for, and ignores `keep`.
  bool pooled = false;
  bool sliced = false;  // holds MSB and LSB slices separately: for the sliced family only
  // Begins with experts of its choice where CacheConfig::layers says what there are (Residency::start).
  bool starts = false;
  bool whole_layers = false;   // keeps all experts of some layers: one cache for all of them
  bool by_popularity = false;  // needs WorkloadConfig::popularity, which recorded routing says
  // Is asked expert by expert, and so can give experts up to a device and adopt what leaves one
  // (TierExchange).
  bool adopts = false;
  // What WorkloadConfig says acts on it: the steps of its window; how many experts it exchanges at a time.
  bool windowed = false, swaps = false;
  bool learns_idle = false;  // on a device: WorkloadConfig::admit acts on it
  CacheScores scores = CacheScores::kNone;
  // What it remembers of one layer with so many experts, at most; null: a few numbers an expert.
  Bytes (*bytes_of_layer)(std::size_t experts) = nullptr;
};

// By which rules of RouterConfig a router changes the selection.
enum class RouterRules : std::uint8_t {
  kNone,
  kLambda,  // CacheAwareRules::lambda
  kShare,   // CacheAwareRules::p
  kSmoe,    // SmoeRules
};

struct RouterPolicy {
  std::string_view name;
  std::unique_ptr<Router> (*make)(const RouterConfig&);
  std::string_view source;
  bool lossy = false;  // may select experts that the model would not
  bool joint = false;  // chooses for all tokens of a step together: what a token gets depends on the others
  // Plays RouterConfig::script, in prompts, too: for benchmarks. What it does depends on no residency.
  bool scripted = false;
  RouterRules rules = RouterRules::kNone;
};

// What a prefetch must have been told of other text before it can predict anything.
enum class PrefetchNeeds : std::uint8_t {
  kNothing,
  kResidual,     // the mean differences of gate inputs, by which the predictor works (prefetch/residual.h)
  kTransitions,  // PrefetchConfig::transitions
};

struct PrefetchPolicy {
  std::string_view name;
  std::unique_ptr<Prefetch> (*make)(const PrefetchConfig&);
  std::string_view source;
  PrefetchNeeds needs = PrefetchNeeds::kNothing;
  PredictorKind predictor{};  // Prefetch::predictor()
  bool prefetches = true;     // Prefetch::prefetches()
  bool guesses_known =
      false;  // how many of its guesses are right is known beforehand: plans count the others
  std::string_view alias = {};  // an older name, found as well
};

struct SchedulerPolicy {
  std::string_view name;
  std::unique_ptr<Scheduler> (*make)();
  std::string_view source;
  bool by_costs = false;  // plans with the costs of planes, exponent chunks and decoding
};

struct PlacementPolicy {
  std::string_view name;
  std::unique_ptr<Placement> (*make)();
  std::string_view source;
  bool needs_device = true;
  // Units follow from measured times; else from tokens, layers and slots alone, so that runs divide alike.
  bool timed = false;
  std::string_view alias = {};  // an older name, found as well
};

std::span<const CachePolicy> cache_policies();
std::span<const RouterPolicy> router_policies();
std::span<const PrefetchPolicy> prefetch_policies();
std::span<const SchedulerPolicy> scheduler_policies();
std::span<const PlacementPolicy> placement_policies();

// Error(kUsage) that lists the known names; of a placement it names the setting that asks for it.
const CachePolicy& find_cache(std::string_view name);
const RouterPolicy& find_router(std::string_view name);
const PrefetchPolicy& find_prefetch(std::string_view name);
const SchedulerPolicy& find_scheduler(std::string_view name);
const PlacementPolicy& find_placement(std::string_view name, Setting asked_by = Setting::kPlacement);

// Makes the cache after validating its configuration. Error(kUsage) also for an oracle without the future.
std::unique_ptr<Cache> make_cache(const CachePolicy& policy, const CacheConfig& config);
std::unique_ptr<Cache> make_cache(std::string_view name, const CacheConfig& config);

}  // namespace sluice::experts
