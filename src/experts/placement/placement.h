// Placement policies: which compute unit runs each needed expert of a layer step. SPEC §2.5, §3.3.
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
  std::span<const double> t_host = {};           // computing the expert for its tokens on the host
  std::span<const double> t_device = {};         // the same on the device
  std::span<const double> transfer = {};         // bringing the expert to the device; 0 if it is there
  std::span<const std::uint8_t> on_device = {};  // 1: the expert is there
  // Experts that may be on the device during the layer; empty: all.
  std::optional<std::uint32_t> slots = {};
};

struct Assignment {
  std::vector<Unit> unit;  // (experts)
};

// Thread-compatible.
class Placement {
 public:
  virtual ~Placement() = default;
  // Replaces `out`. The answer is binding: each expert is computed where it was assigned.
  virtual void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) = 0;
  virtual std::string name() const = 0;
};

std::unique_ptr<Placement> make_host_placement();

}  // namespace sluice::experts
