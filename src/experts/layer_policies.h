// The policies of a run, and the logical residency that they decide about.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "experts/cache/residency.h"
#include "experts/device_slices.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/routing/loss_guard.h"
#include "experts/routing/miss_constraint.h"
#include "experts/routing/precision.h"
#include "experts/routing/router.h"
#include "experts/schedule/expert_costs.h"
#include "experts/schedule/hybrid_timeline.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// A device beside the host.
struct DevicePolicies {
  std::vector<std::unique_ptr<Residency>> residencies;  // one for all layers, or one per layer
  std::optional<std::uint32_t> slots = {};              // PlacementCosts::slots
  std::optional<DeviceSlices> slices = {};              // empty: experts are not in slices
  // Copies that may be on the device before they are computed (HybridWork::buffers).
  std::uint32_t buffers = kAnyBuffers;
  // Places the experts of steps that have at least so many tokens of prompts; null: as all others.
  std::unique_ptr<Placement> prefill_placement = {};
  std::uint32_t prefill_from = 1;
  // Names experts to copy while the link is idle, at most so many a layer; null: none.
  std::unique_ptr<Prefetch> prefetch = {};
  std::uint32_t prefetch_size = kAnyRequests;
  bool guards_prefetch = false;  // a layer whose prefetches cost more than they save names none for a while
  // kExclusive: the host's caches adopt (CachePolicy::adopts).
  Tiers tiers = Tiers::kInclusive;
  // Layers whose experts the host computes, whatever the placement (1); none of them goes there. Empty: none.
  std::vector<std::uint8_t> left_out = {};
  // The host need not have all experts from the start: only those that it has are copied ahead.
  bool host_may_lack = false;

  bool leaves_out(std::size_t sparse_layer) const { return !left_out.empty() && left_out[sparse_layer] != 0; }
  Residency& residency(std::size_t sparse_layer) const {
    return *residencies[residencies.size() == 1 ? 0 : sparse_layer];
  }
};

struct LayerPolicies {
  PrecisionRule precision{.mode = PrecisionMode::kFull};  // kFull: no slices
  std::unique_ptr<LossGuard> guard;                       // limits the loss; null: no limit
  std::unique_ptr<MissConstraint> constraint;             // accounts and limits misses; null: neither
  std::unique_ptr<Router> router;        // may ask the constraint; null: every routing is given
  std::unique_ptr<Placement> placement;  // null: nothing is assigned
  std::vector<std::unique_ptr<Residency>> residencies;  // the host's: one for all layers, or one per layer
  std::optional<DevicePolicies> device = {};            // empty: there is none
  std::unique_ptr<Scheduler> scheduler;                 // null: nothing is read
  ExpertCosts costs;                                    // that scheduler, placement and clock plan with
  std::unique_ptr<Prefetch> prefetch;                   // null: nothing is read ahead
  bool whole_layers = false;                            // experts that no token chose are fetched, too

  bool sliced() const { return precision.mode != PrecisionMode::kFull; }
  Residency& residency(std::size_t sparse_layer) const {
    return *residencies[residencies.size() == 1 ? 0 : sparse_layer];
  }
};

}  // namespace sluice::experts
