// Placements that divide the experts of a layer between the units: the methods of split.h and stall_split.h
// behind the interface that runs and replays ask. SPEC §3.2, §3.3.
#include <algorithm>

#include "experts/placement/balancer.h"
#include "experts/placement/beam_split.h"
#include "experts/placement/greedy_split.h"
#include "experts/placement/optimal_split.h"
#include "experts/placement/placement.h"
#include "experts/placement/ratio_prefix_split.h"
#include "experts/placement/stall_split.h"

namespace sluice::experts {
namespace {

void take_units(std::span<const std::uint8_t> on_device, Assignment& out) {
  for (std::size_t i = 0; i < on_device.size(); ++i)
    if (on_device[i] != 0) out.unit[i] = Unit::kDevice;
}

// An expert's time on the device is the longer of its copy and its computation: both go on side by side for
// the whole layer.
template <class Split>
class SplitPlacement final : public Placement {
 public:
  explicit SplitPlacement(const char* name) : name_(name) {}

  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    out.unit.assign(demand.experts.size(), Unit::kHost);
    if (costs.on_device.empty()) return;
    device_.clear();
    for (std::size_t i = 0; i < demand.experts.size(); ++i)
      device_.push_back(std::max(costs.transfer[i], costs.t_device[i]));
    on_device_.resize(demand.experts.size());
    split_.split({.tokens = demand.tokens,
                  .host = costs.t_host,
                  .device = device_,
                  .resident = costs.on_device,
                  .slots = costs.slots.value_or(kAnySlots)},
                 on_device_);
    take_units(on_device_, out);
  }
  std::uint64_t fallbacks() const override {
    if constexpr (requires { split_.fallbacks(); }) return split_.fallbacks();
    return 0;
  }
  std::string name() const override { return name_; }

 private:
  const char* name_;
  Split split_;
  std::vector<double> device_;
  std::vector<std::uint8_t> on_device_;
};

class TwoPointerPlacement final : public Placement {
 public:
  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    out.unit.assign(demand.experts.size(), Unit::kHost);
    if (costs.on_device.empty()) return;
    on_device_.resize(demand.experts.size());
    split_.split({.tokens = demand.tokens,
                  .resident = costs.on_device,
                  .host = costs.t_host,
                  .compute = costs.t_device,
                  .transfer = costs.transfer,
                  .slots = costs.slots.value_or(kAnySlots)},
                 on_device_);
    take_units(on_device_, out);
  }
  std::string name() const override { return "two-pointer"; }

 private:
  StallSplit split_;
  std::vector<std::uint8_t> on_device_;
};

// What has a place on the device is computed there; the rest is balanced between link and host. A load takes
// as long as the longest of them, since the rule knows one time alone.
class BalancePlacement final : public Placement {
 public:
  BalancePlacement(const char* name, BalanceRule rule) : name_(name), rule_(rule) {}

  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    out.unit.assign(demand.experts.size(), Unit::kHost);
    missing_.clear();
    tokens_.clear();
    for (std::uint32_t i = 0; i < costs.on_device.size(); ++i) {
      if (costs.on_device[i] != 0) {
        out.unit[i] = Unit::kDevice;
      } else {
        missing_.push_back(i);
        tokens_.push_back(demand.tokens[i]);
      }
    }
    find_times(costs);
    const Balance balance = balancer_.balance(rule_, tokens_, host_times_, load_time_);
    const std::size_t most = costs.slots.value_or(kAnySlots);
    for (const std::uint32_t place : balance.loads.first(std::min(balance.loads.size(), most)))
      out.unit[missing_[place]] = Unit::kDevice;
  }
  std::string name() const override { return name_; }

 private:
  // The balancer asks that no expert costs the host less than one of fewer tokens, which noise can break.
  void find_times(const PlacementCosts& costs) {
    host_times_.assign(missing_.size(), 0);
    load_time_ = 0;
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      load_time_ = std::max(load_time_, costs.transfer[missing_[i]]);
      for (std::size_t j = 0; j < missing_.size(); ++j)
        if (tokens_[j] <= tokens_[i]) host_times_[i] = std::max(host_times_[i], costs.t_host[missing_[j]]);
    }
  }

  const char* name_;
  const BalanceRule rule_;
  Balancer balancer_;
  std::vector<std::uint32_t> missing_, tokens_;  // places in the demand, and their tokens
  std::vector<double> host_times_;
  double load_time_ = 0;
};

}  // namespace

std::unique_ptr<Placement> make_greedy_placement() {
  return std::make_unique<SplitPlacement<GreedySplit>>("greedy");
}
std::unique_ptr<Placement> make_beam_placement() {
  return std::make_unique<SplitPlacement<BeamSplit>>("beam");
}
std::unique_ptr<Placement> make_optimal_placement() {
  return std::make_unique<SplitPlacement<OptimalSplit>>("optimal");
}
std::unique_ptr<Placement> make_ratio_prefix_placement() {
  return std::make_unique<SplitPlacement<RatioPrefixSplit>>("ratio-prefix");
}
std::unique_ptr<Placement> make_two_pointer_placement() { return std::make_unique<TwoPointerPlacement>(); }
std::unique_ptr<Placement> make_smoe_balance_placement() {
  return std::make_unique<BalancePlacement>("smoe-balance", BalanceRule::kLookAhead);
}
std::unique_ptr<Placement> make_smoe_balance_literal_placement() {
  return std::make_unique<BalancePlacement>("smoe-balance-literal", BalanceRule::kLiteral);
}

}  // namespace sluice::experts
