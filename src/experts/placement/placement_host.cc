// Puts every expert on the host: for machines without an accelerator, and for ZipMoE's unified memory (SPEC
// §5.2), where host and device are one.
#include "experts/placement/placement.h"

namespace sluice::experts {
namespace {

class HostPlacement final : public Placement {
 public:
  void assign(const Demand& demand, const PlacementCosts&, Assignment& out) override {
    out.unit.assign(demand.experts.size(), Unit::kHost);
  }
  std::string name() const override { return "host"; }
};

}  // namespace

std::unique_ptr<Placement> make_host_placement() { return std::make_unique<HostPlacement>(); }

}  // namespace sluice::experts
