// What stands for MoE-Lightning: always the same share of the experts that the device lacks is streamed to
// it, whichever they are. SPEC §3.7.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "experts/placement/placement.h"

namespace sluice::experts {
namespace {

double mean(std::span<const double> all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

// Chosen once for prompts and once for decode steps: of a grid the share with the least modelled time, as if
// every expert of the first layer that lacks some had the mean work.
class FixedSharePlacement final : public Placement {
 public:
  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    out.unit.assign(demand.experts.size(), Unit::kHost);
    if (costs.on_device.empty()) return;
    const auto lacking = static_cast<std::size_t>(std::ranges::count(costs.on_device, 0));
    std::optional<double>& share = share_[costs.phase == StepKind::kPrompt ? 0 : 1];
    if (!share && lacking > 0) share = best_share(costs, lacking);
    std::size_t streamed =
        share ? static_cast<std::size_t>(std::lround(*share * static_cast<double>(lacking))) : 0;
    if (costs.slots) streamed = std::min<std::size_t>(streamed, *costs.slots);
    for (std::size_t i = 0; i < out.unit.size(); ++i) {
      const bool there = costs.on_device[i] != 0;
      if (!there && streamed == 0) continue;
      out.unit[i] = Unit::kDevice;
      streamed -= there ? 0 : 1;
    }
  }
  std::string name() const override { return "fixed-share"; }

 private:
  static double best_share(const PlacementCosts& costs, std::size_t lacking) {
    constexpr int kGrid = 16;
    const double host = mean(costs.t_host), device = mean(costs.t_device);
    const auto all = static_cast<double>(costs.t_host.size()), missing = static_cast<double>(lacking);
    double copy = 0;
    for (std::size_t i = 0; i < costs.transfer.size(); ++i)
      copy += costs.on_device[i] == 0 ? costs.transfer[i] / missing : 0;
    double best = 0, least = 0;
    for (int i = 0; i <= kGrid; ++i) {
      const double share = static_cast<double>(i) / kGrid;
      const double there = (all - missing) * device + share * missing * std::max(copy, device);
      const double time = std::max(there, (1 - share) * missing * host);
      if (i == 0 || time < least) best = share, least = time;
    }
    return best;
  }

  std::array<std::optional<double>, 2> share_;  // for prompts, for decode steps
};

}  // namespace

std::unique_ptr<Placement> make_fixed_share_placement() { return std::make_unique<FixedSharePlacement>(); }

}  // namespace sluice::experts
