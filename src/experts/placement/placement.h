// Placement policies: which compute unit runs each needed expert of a layer step. SPEC §2.5, §3.2, §3.3.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experts/core/demand.h"
#include "experts/core/step_kind.h"
#include "experts/core/tier.h"

namespace sluice::experts {

// What it costs to compute the experts of a demand here or there. All spans are parallel to Demand::experts;
// times are in one unit. Without a device t_device, transfer and on_device are empty. Non-owning.
struct PlacementCosts {
  StepKind phase = StepKind::kDecode;
  std::span<const double> t_host = {};    // computing the expert for its tokens on the host
  std::span<const double> t_device = {};  // the same on the device, once it is there
  // What is left of bringing the expert to the device, on the modelled clock; 0 if it is there.
  std::span<const double> transfer = {};
  // 1: the expert is on the device or on its way there: in a slot of the cache, or where a prefetch puts it
  // whose copy has begun.
  std::span<const std::uint8_t> on_device = {};
  // Experts of which that is not so that may be brought there for the layer; empty: any number, because they
  // pass through staging buffers one after the other.
  std::optional<std::uint32_t> slots = {};
};

struct Assignment {
  std::vector<Unit> unit;  // (experts)
};

// Without a device all experts are computed on the host, whatever the policy. Thread-compatible.
class Placement {
 public:
  virtual ~Placement() = default;
  // Replaces `out`. The answer is binding: each expert is computed where it was assigned.
  virtual void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) = 0;
  // Events so far for which the search was given up, and a cheaper rule has answered.
  virtual std::uint64_t fallbacks() const { return 0; }
  virtual std::string name() const = 0;
};

// placement_fixed.cc: the unit does not depend on what the other experts cost.
std::unique_ptr<Placement> make_cpu_placement();          // all on the host
std::unique_ptr<Placement> make_device_placement();       // all on the device
std::unique_ptr<Placement> make_layer_split_placement();  // where the experts are
std::unique_ptr<Placement> make_threshold_placement();
std::unique_ptr<Placement> make_fiddler_placement();
std::unique_ptr<Placement> make_fixed_share_placement();  // placement_fixed_share.cc
// placement_split.cc: the experts are divided so that the later unit ends early.
std::unique_ptr<Placement> make_greedy_placement();
std::unique_ptr<Placement> make_beam_placement();
std::unique_ptr<Placement> make_optimal_placement();
std::unique_ptr<Placement> make_ratio_prefix_placement();
std::unique_ptr<Placement> make_two_pointer_placement();
std::unique_ptr<Placement> make_smoe_balance_placement();
std::unique_ptr<Placement> make_smoe_balance_literal_placement();

}  // namespace sluice::experts
