// A split of the least makespan, found by walking all partial splits that no other partial split beats on
// both sides. What solvers are to DALI; SPEC §3.3. Exact, but the number of partial splits has no useful
// bound where times differ by little, so it is capped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/placement/ratio_prefix_split.h"
#include "experts/placement/split.h"

namespace sluice::experts {

// Thread-compatible.
class OptimalSplit {
 public:
  // Partial splits that one call may look at. 128 experts with random times: .6 ms and never as many without
  // a limit on slots; with slots for a quarter of them always as many, in 6 ms (2026-11, Zen 4).
  static constexpr std::size_t kMostStates = 1 << 15;
  explicit OptimalSplit(std::size_t most_states = kMostStates) : most_states_(most_states) {}

  // Sets `on_device` (n) to 1 for the experts of the device, to 0 for all others. Beyond the cap the answer
  // is that of RatioPrefixSplit, and fallbacks() counts it.
  SplitTimes split(const SplitCosts& costs, std::span<std::uint8_t> on_device);
  std::uint64_t fallbacks() const { return fallbacks_; }

 private:
  // A partial split: the first experts of the order are placed.
  struct State {
    double device = 0, host = 0;
    std::uint32_t used = 0;  // slots
    std::uint32_t node = 0;  // in nodes_: its last placement
  };
  struct Node {
    std::uint32_t parent = 0;
    bool joins = false;  // the device
  };

  void prepare(const SplitCosts& costs);
  // A time that no completion of the state ends before, once `placed` experts are placed.
  double bound(const State& state, std::size_t placed) const;
  // Keeps the state unless a kept one beats it; states come by device time ascending, then by host time.
  void keep(const State& parent, const State& state, bool joins);

  std::size_t most_states_;
  std::uint64_t fallbacks_ = 0;
  RatioPrefixSplit ratio_prefix_;
  std::vector<std::uint32_t> order_;  // the active experts, in the order of what the device gains
  std::vector<double> device_up_to_;  // (active + 1): device times of the experts before a place of the order
  std::vector<double> host_from_;     // (active + 1): host times of the experts from that place on
  std::vector<State> states_, next_;  // by device time ascending
  std::vector<double> least_host_;    // by slots used: the least host time of the states kept in this round
  std::vector<Node> nodes_;
};

}  // namespace sluice::experts
