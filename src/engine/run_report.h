// What an engine is and what it has done so far, for reports: the one thing that they read. References stay
// valid and current as long as the engine lives; pointers that may be null say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/machine/cpu.h"

namespace sluice {
namespace device {
class Accountant;
}
namespace store {
class Checkpoint;
}
namespace model {
struct Model;
}
namespace experts {
class InputPrediction;
class LayerDecider;
class LossGuard;
class MissConstraint;
class PrefetchTrial;
struct TierChoice;  // experts/tier_choice.h
}  // namespace experts
namespace fetch {
class ExpertStore;
class WeightFiles;
}  // namespace fetch
}  // namespace sluice

namespace sluice::engine {

struct DenseChoice;  // engine/forward/dense/dense_choice.h
struct DensePlace;   // engine/device_budget.h
class DenseWeights;  // engine/forward/dense/dense_weights.h
class Drafting;      // engine/draft/drafting.h
class Embedding;     // engine/forward/embedding.h
class EngineDevice;  // engine/engine_device.h
struct EnginePlan;   // engine/plan/engine_plan.h
struct MemoryPlan;   // engine/plan/memory_plan.h
struct PolicyPlan;   // engine/plan/engine_plan.h
struct PoolPlan;     // engine/plan/pool_plan.h
class PrefixCache;   // engine/session/prefix_cache.h
struct Profile;      // engine/plan/profile.h
struct Statistics;   // engine/watch/statistics.h

struct DiskReport {
  Bytes bytes_read = 0;
  std::uint64_t reads = 0;  // requests to the device
  double seconds = 0;       // during which at least one read was in flight
  std::string method;       // "io_uring" "pread" "mmap"
};

// Seconds of the constructor's stages.
struct StartTimes {
  double plan_s = 0;   // weight files opened, experts laid out, the budget divided
  double dense_s = 0;  // dense weights read
  // Costs measured, if a policy needs costs and none were given; caches made.
  double profile_s = 0;
};

struct RunReport {
  const store::Checkpoint& checkpoint;
  const model::Model& model;
  const EnginePlan& plan;
  const PolicyPlan& policies;  // those of the plan that run
  const MemoryPlan& memory;
  const DenseChoice& dense_choice;
  const DenseWeights& weights;
  const Embedding& embedding;
  const std::optional<Profile>& profile;     // if a policy needed it
  const std::optional<PoolPlan>& pool_plan;  // for caches with pools
  const device::Accountant& accountant;
  const Statistics& statistics;
  const Drafting& drafting;     // what drafts have brought, or why there are none
  const PrefixCache& prefixes;  // keys and values: blocks in use
  const StartTimes& start_times;
  const std::string& isa_warning;
  const experts::LayerDecider& decider;
  const experts::InputPrediction& input_prediction;  // for routers of next layers
  const EngineDevice* device;                        // null: there is none
  const DensePlace& dense_place;                     // empty where the plan leaves the dense part to the host
  const experts::TierChoice& tiers;                  // beside a device
  const fetch::ExpertStore& experts;                 // parts in memory, sizes, counters
  fetch::WeightFiles& files;
  Isa isa;
  unsigned threads;
  std::size_t chunk;  // most tokens of a step

  DiskReport disk() const;  // reads since the engine was made, loading included
  // Whether read-ahead pays, as decode steps have shown; null without read-ahead.
  const experts::PrefetchTrial* prefetch_trial() const;
  const experts::MissConstraint* constraint() const;  // may be null
  const experts::LossGuard* loss_guard() const;       // may be null
  std::uint64_t scheduler_fallbacks() const;          // how often its cost guard gave up a search
  std::uint64_t decision_hash() const;                // over all decisions so far, of all tiers
  Bytes cache_capacity() const;                       // bytes of each cache
  // Bytes of the weight files in the page cache, those that other programs have read included. Empty under
  // O_DIRECT, whose reads leave nothing there.
  std::optional<Bytes> page_cache_bytes() const;
  Bytes expert_disk_bytes() const;    // mean bytes that a miss reads
  Bytes expert_memory_bytes() const;  // mean bytes of an expert as the caches keep it
};

}  // namespace sluice::engine
