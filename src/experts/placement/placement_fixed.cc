// Placements that look at one expert at a time: what stands for llama.cpp, KTransformers, Fiddler and others
// beside those that divide a layer. SPEC §3.7 and §10 (G11).
#include <algorithm>

#include "experts/placement/placement.h"

namespace sluice::experts {
namespace {

// What is known of one expert.
struct Costs {
  double host = 0, device = 0, transfer = 0;
  bool on_device = false;
};

// Asks `to_device` for each expert, in ascending order, which is also the order in which slots are taken.
class EachPlacement final : public Placement {
 public:
  EachPlacement(const char* name, bool (*to_device)(const Costs&)) : name_(name), to_device_(to_device) {}

  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    out.unit.assign(demand.experts.size(), Unit::kHost);
    if (costs.on_device.empty()) return;
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < out.unit.size(); ++i) {
      const bool there = costs.on_device[i] != 0;
      if (!there && costs.slots && taken == *costs.slots) continue;
      if (!to_device_({costs.t_host[i], costs.t_device[i], costs.transfer[i], there})) continue;
      out.unit[i] = Unit::kDevice;
      taken += there ? 0 : 1;
    }
  }
  std::string name() const override { return name_; }

 private:
  const char* name_;
  bool (*to_device_)(const Costs&);
};

std::unique_ptr<Placement> each(const char* name, bool (*to_device)(const Costs&)) {
  return std::make_unique<EachPlacement>(name, to_device);
}

}  // namespace

std::unique_ptr<Placement> make_cpu_placement() {
  return each("cpu", [](const Costs&) { return false; });
}

std::unique_ptr<Placement> make_device_placement() {
  return each("device", [](const Costs&) { return true; });
}

std::unique_ptr<Placement> make_layer_split_placement() {
  return each("layer-split", [](const Costs& expert) { return expert.on_device; });
}

// Loads an expert as soon as the host would need longer for it than the link. The host's time does not fall
// with the tokens, so this is a least number of them.
std::unique_ptr<Placement> make_threshold_placement() {
  return each("threshold",
              [](const Costs& expert) { return expert.on_device || expert.host >= expert.transfer; });
}

std::unique_ptr<Placement> make_fiddler_placement() {
  return each("fiddler", [](const Costs& expert) {
    return expert.on_device || std::max(expert.transfer, expert.device) <= expert.host;
  });
}

}  // namespace sluice::experts
