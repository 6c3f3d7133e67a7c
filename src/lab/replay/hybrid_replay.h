// Replays recorded routing through a host and a device side by side: the engine's own LayerDecider decides,
// and its modelled clock says how long that takes. DALI; SPEC §3, §6.3 and §10 (G3, G8); docs/replay.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/core/pools.h"
#include "experts/decision_log.h"
#include "experts/device_decider.h"
#include "experts/layer_decider.h"
#include "experts/named_policy.h"
#include "experts/prefetch/prefetch.h"
#include "experts/routing/miss_account.h"
#include "experts/routing/routing_changes.h"
#include "experts/routing/smoe_rules.h"
#include "experts/schedule/expert_costs.h"
#include "experts/tier_choice.h"
#include "lab/replay/routed_steps.h"

namespace sluice::lab {

// The host's own cache. Its capacity is in the unit of HybridSettings::sizes.
struct HybridHost {
  experts::Named<experts::CachePolicy> cache = "lru";
  bool by_layer = false;                         // one for each layer; else one for all
  std::optional<Bytes> capacity = {};            // each cache's; empty: room for all experts
  experts::Parts keep = experts::Part::kFull;    // unused for slices, of which it keeps what their rules say
  std::optional<experts::PoolSlots> pools = {};  // for zip-pools, which needs them
};

struct HybridSettings {
  HybridHost host = {};
  const experts::ExpertSizes* sizes = nullptr;  // the trace's; null: capacities count experts
  // Experts are in slices, of which `sizes` are, and computed by these rules; empty: they are whole.
  std::optional<experts::SliceSetting> slices = {};
  experts::Parts slot_slices = experts::Part::kMsb | experts::Part::kLsb;  // that a slot has room for
  // "exact": the recorded choices. Another router chooses anew, by the recorded logits.
  experts::Named<experts::RouterPolicy> router = "exact";
  experts::SmoeRules smoe = {};  // for that router
  experts::Named<experts::PlacementPolicy> placement = "greedy";
  experts::Named<experts::PlacementPolicy> prefill_placement = {};  // empty: as `placement`
  std::uint32_t prefill_from = 1;  // tokens of a prompt from which on that holds
  experts::Named<experts::CachePolicy> device_cache = "workload-ema";
  std::uint32_t slots = 0;                                    // slots of the device's cache, for each layer
  std::uint32_t buffers = experts::kAnyBuffers;               // HybridWork::buffers
  experts::Named<experts::PrefetchPolicy> prefetch = "none";  // to the device
  std::uint32_t prefetch_size = 1;                            // experts of a layer, at most
  bool guards_prefetch = false;                               // DevicePolicies::guards_prefetch
  // For `stat`; it must outlive the replay.
  const experts::ExpertTransitions* transitions = nullptr;
  std::optional<experts::Tiers> tiers = {};  // empty: as experts::usual_tiers() says
  bool packed_copies = false;                // what the host keeps packed is packed on the device, too
  experts::WorkloadConfig workload = {};
  experts::ExpertCosts costs = {};  // seconds
  std::uint64_t seed = 0;
};

// The host's residency, as it was asked: about what the host computes, and what the device gets from it.
struct HybridHostCounts {
  std::uint64_t accesses = 0, hits = 0;
  experts::MissAccount slices;  // for experts in slices
  std::uint64_t misses() const { return accesses - hits; }
};

// The experts that the model's own router would choose, and those of them in a slot of the device when the
// layer was decided: by layer and step, each once. A router that replaces experts computes others.
struct OwnExperts {
  std::uint64_t active = 0, resident = 0;
  double a_hit() const {
    return active == 0 ? 0 : static_cast<double>(resident) / static_cast<double>(active);
  }
};

// Totals of all steps of one kind. Seconds are of the modelled clock.
struct HybridPhase {
  std::uint64_t steps = 0, tokens = 0;
  double seconds = 0;  // whole steps
  experts::DeviceCounts counts;
  OwnExperts own;
  experts::PredictionCounts predictions;  // that the prefetch has followed
  HybridHostCounts host;
  experts::LinkUse link;
};

struct HybridResult {
  HybridPhase prefill, decode;
  experts::RoutingChanges changes, decode_changes;  // by the router: in all steps, and in decode steps
  // Tokens of prompts in a layer whose recorded choice is not the best of their scores: the model limits its
  // selection by a rule that no trace says, so a run with this router chooses otherwise. 0 for "exact".
  std::uint64_t recorded_differs = 0;
  std::uint64_t start = 0;      // experts that the device begins with; their copies are on no clock
  std::uint64_t fallbacks = 0;  // the placement's
  experts::TierChoice tiers;
  std::uint64_t decision_hash = 0;
};

// Sees each decision when it has been made, prefetches included, before the clock runs the layer. May be
// empty.
using HybridWatch =
    std::function<void(const RoutedStep&, const experts::LayerDecision&, const experts::DeviceDecider&)>;

// Scores are those that the engine had, where the trace has logits; else the recorded weights of the chosen
// experts, and 0 for the others. Caches are kept over sequence ends. `log` as in replay(). Error(kUsage) for
// a combination that cannot be (experts/combination.h), an oracle, a cache that follows popularity without
// counts, a prefetch by predicted scores where `steps` have none (they are taken as those of its predictor),
// and a router that needs logits where `steps` have none; Error(kInterrupted).
HybridResult replay_hybrid(const RoutedSteps& steps, const HybridSettings& settings,
                           const std::function<void(std::string_view)>& log = {},
                           const std::function<bool()>& stop = {}, const HybridWatch& watch = {});

}  // namespace sluice::lab
