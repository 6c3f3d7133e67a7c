// What tests put into an engine beside its plan. A plan says what a user decided; nobody can ask for these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "device/choice/make_device.h"
#include "experts/core/ids.h"
#include "experts/core/tier.h"
#include "experts/schedule/expert_costs.h"

namespace sluice::experts {
class ExpertSizes;
class Placement;
class Prefetch;
class Residency;
struct LayerPolicies;
}  // namespace sluice::experts

namespace sluice::kernels {
class UnitKernels;
}

namespace sluice::engine {

class ComputeUnit;  // engine/forward/unit/compute_unit.h
struct UnitParts;   // engine/plan/unit_parts.h

// A compute unit beside the host, and what divides the experts of a layer between the two. Not with whole
// layers.
struct SecondUnit {
  std::function<std::unique_ptr<ComputeUnit>(const UnitParts&)> make_unit;
  std::function<std::unique_ptr<experts::Placement>()> make_placement;
  // The caches of the unit's own memory, as DevicePolicies has them; empty: nothing stays there.
  std::function<std::vector<std::unique_ptr<experts::Residency>>(const experts::ExpertSizes&)>
      make_residencies = {};
  experts::DeviceCosts costs = {};  // its caches and the placement decide by them
  // Chooses what is copied there ahead. Empty: nothing is.
  std::function<std::unique_ptr<experts::Prefetch>()> make_prefetch = {};
  std::uint32_t prefetch_size = 0;                    // the most experts of a layer that are copied ahead
  experts::Tiers tiers = experts::Tiers::kInclusive;  // kExclusive with caches alone
  // What a slot has room for, where experts are in slices.
  experts::Parts slot_slices = experts::Part::kMsb | experts::Part::kLsb;

  // Adds what decides about it to the host's policies.
  void put_policies(const experts::ExpertSizes& sizes, experts::LayerPolicies& policies) const;
};

struct EngineHooks {
  std::optional<SecondUnit> second_unit = {};  // computes in place of the plan's device; empty: nothing does
  device::CopyFault fault = {};                // fails copies of the plan's device; empty: no copy fails
  device::DeviceMaker devices = {};            // makes the plan's device
  // What that computes with, also while it is checked; empty: make_unit_kernels().
  std::function<std::unique_ptr<kernels::UnitKernels>(device::Device&)> kernels = {};
};

}  // namespace sluice::engine
