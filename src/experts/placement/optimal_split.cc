#include "experts/placement/optimal_split.h"

#include <algorithm>
#include <limits>

namespace sluice::experts {

void OptimalSplit::prepare(const SplitCosts& costs) {
  rank_by_ratio(costs, order_);
  const std::size_t n = order_.size();
  device_up_to_.assign(n + 1, 0);
  host_from_.assign(n + 1, 0);
  for (std::size_t j = 0; j < n; ++j) device_up_to_[j + 1] = device_up_to_[j] + costs.device[order_[j]];
  for (std::size_t j = n; j-- > 0;) host_from_[j] = host_from_[j + 1] + costs.host[order_[j]];
}

// If experts could be cut, the rest would be placed best in the order of what the device gains: its beginning
// goes to the device, up to the point where both sides end together.
double OptimalSplit::bound(const State& state, std::size_t placed) const {
  const auto device_at = [&](std::size_t m) {
    return state.device + device_up_to_[m] - device_up_to_[placed];
  };
  // The first place where the device ends no earlier than the host; behind all experts if there is none.
  std::size_t low = placed, high = order_.size() + 1;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (device_at(middle) < state.host + host_from_[middle]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == placed) return state.device;
  if (low > order_.size()) return state.host;
  const double device = device_at(low - 1), host = state.host + host_from_[low - 1];
  const double device_part = device_up_to_[low] - device_up_to_[low - 1];
  const double host_part = host_from_[low - 1] - host_from_[low];
  return device + device_part * (host - device) / (device_part + host_part);
}

void OptimalSplit::keep(const State& parent, const State& state, bool joins) {
  if (!(state.host < least_host_[state.used])) return;
  for (std::size_t used = state.used; used < least_host_.size() && state.host < least_host_[used]; ++used)
    least_host_[used] = state.host;
  next_.push_back(state);
  next_.back().node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent.node, joins});
}

SplitTimes OptimalSplit::split(const SplitCosts& costs, std::span<std::uint8_t> on_device) {
  const SplitTimes known = ratio_prefix_.split(costs, on_device);
  prepare(costs);
  std::uint32_t in_need = 0;  // experts that need a slot
  for (const std::uint32_t i : order_) in_need += costs.resident[i] == 0 ? 1 : 0;
  const std::uint32_t slots = costs.slots < in_need ? costs.slots : 0;  // 0: no limit, and no use is counted
  const bool limited = costs.slots < in_need;

  constexpr double kNever = std::numeric_limits<double>::infinity();
  // Relative, of the bound: its error grows with the number of experts, and reaches 1e-11 with 65536.
  constexpr double kRounding = 1e-9;
  states_.assign(1, {});
  nodes_.assign(1, {});
  for (std::size_t j = 0; j < order_.size(); ++j) {
    const std::uint32_t i = order_[j];
    const bool needs_slot = limited && costs.resident[i] == 0;
    next_.clear();
    least_host_.assign(slots + std::size_t{1}, kNever);
    // Merges the states with the expert on the host and those with it on the device; both are in order.
    std::size_t to_host = 0, to_device = 0;
    const auto on_host = [&](const State& s) { return State{s.device, s.host + costs.host[i], s.used}; };
    const auto joined = [&](const State& s) {
      return State{s.device + costs.device[i], s.host, s.used + (needs_slot ? 1 : 0)};
    };
    while (to_host < states_.size() || to_device < states_.size()) {
      bool joins = to_host == states_.size();
      if (!joins && to_device < states_.size()) {
        const State a = on_host(states_[to_host]), b = joined(states_[to_device]);
        joins = b.device != a.device ? b.device < a.device : b.host < a.host;
      }
      const State& parent = states_[joins ? to_device++ : to_host++];
      if (joins && needs_slot && parent.used == slots) continue;
      const State state = joins ? joined(parent) : on_host(parent);
      if (bound(state, j + 1) * (1 - kRounding) < known.makespan()) keep(parent, state, joins);
    }
    states_.swap(next_);
    if (nodes_.size() > most_states_) {
      ++fallbacks_;
      return known;
    }
  }

  const State* best = nullptr;
  for (const State& state : states_) {
    const double most = std::max(state.device, state.host);
    if (most < (best == nullptr ? known.makespan() : std::max(best->device, best->host))) best = &state;
  }
  if (best == nullptr) return known;  // as good as any
  std::uint32_t node = best->node;
  for (std::size_t j = order_.size(); j-- > 0; node = nodes_[node].parent)
    on_device[order_[j]] = nodes_[node].joins ? 1 : 0;
  return {.device = best->device, .host = best->host};
}

}  // namespace sluice::experts
