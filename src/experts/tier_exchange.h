// Tiers that exclude each other: an expert is kept on the device or in the host's memory, never in both for
// longer than its copy takes. SPEC §10 (G12); docs/hybrid.md.
//
//          device's cache                       host's cache
//     use that stays, from the host ─────────►  gives it up, once it is used
//     update, or prefetch that is kept ──────►  gives it up at the layer's first event that finds it there
//     eviction ─── a return, on the link up ─►  adopts it, if it wants it and finds room; else it is dropped
//
// All of it is decided on logical residencies and the modelled clock, so that a run and its replay decide
// alike.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/cache/residency.h"
#include "experts/device_plan.h"
#include "experts/schedule/hybrid_timeline.h"

namespace sluice::experts {

// Thread-compatible.
class TierExchanger {
 public:
  // What the device's plan for an event of `layer` moves between the tiers. `device`: as it is behind the
  // event; `host`: of that layer, before it. `by_layer`: the host has a cache for each layer; experts of
  // others do not come back then. Valid until the next call.
  TierExchange exchange(std::uint32_t layer, bool by_layer, const DevicePlan& plan, const Residency& device,
                        const ResidencyView& host, const HybridTimeline& clock);

 private:
  // Where updates are on their way, both tiers have the expert.
  void take_arrived(std::uint32_t layer, const Residency& device, const ResidencyView& host,
                    const HybridTimeline& clock);

  std::vector<ExpertId> under_way_;  // to the device, in order of decision; the host may have them
  std::vector<ExpertId> given_, offered_;
};

}  // namespace sluice::experts
