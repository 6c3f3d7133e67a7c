// The active experts of one layer, split between host and device so that the slower of the two ends as early
// as possible: the least max(T_device, T_host) over all partitions. DALI (eq. 3 to 9, Alg. 1); SPEC §3.3.
//
// greedy_split.h, beam_split.h, ratio_prefix_split.h and optimal_split.h find such a split, balancer.h one
// where all loads cost the same, and stall_split.h one that counts how long the device waits for the link.
// All are pure and deterministic, and allocate nothing once they have seen the largest layer
// (optimal_split.h: the most partial splits).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::experts {

constexpr std::uint32_t kAnySlots = std::numeric_limits<std::uint32_t>::max();

// The experts of one layer, ascending by id: their places break ties. (n) each, non-owning. All times are in
// one unit, finite and at least 0.
struct SplitCosts {
  std::span<const std::uint32_t>
      tokens;                      // w, tokens of the step; 0: idle, on neither side whatever its times
  std::span<const double> host;    // time on the host
  std::span<const double> device;  // time on the device, what is left of a transfer included
  std::span<const std::uint8_t> resident;  // 1: on the device already, so it needs no slot
  std::uint32_t slots = kAnySlots;         // how many experts that are not resident the device has room for

  std::size_t size() const { return tokens.size(); }
};

// Sums over the experts of either side, added in the order in which a method places them.
struct SplitTimes {
  double device = 0, host = 0;
  double makespan() const { return std::max(device, host); }
};

// The slots that are left while experts are placed one by one.
class SlotCount {
 public:
  explicit SlotCount(const SplitCosts& costs) : resident_(costs.resident), left_(costs.slots) {}
  bool admits(std::uint32_t place) const { return resident_[place] != 0 || left_ > 0; }
  void take(std::uint32_t place) { left_ -= resident_[place] == 0 && left_ != kAnySlots ? 1 : 0; }

 private:
  std::span<const std::uint8_t> resident_;
  std::uint32_t left_;
};

// Trips a check unless all spans, and the `on_device` of an answer, have one length.
void check_sizes(const SplitCosts& costs, std::span<const std::uint8_t> on_device);

// One active expert and what it is sorted by.
struct RankedPlace {
  double key = 0;
  std::uint32_t place = 0;
};
// Replaces `out` by the active experts, those first for which the choice of the side matters most: by
// |device - host| descending, then by place.
void rank_by_gap(const SplitCosts& costs, std::vector<RankedPlace>& out);

// Replaces `out` by the active experts, those first that gain most from the device: by host / device
// descending, compared as products; an expert that costs the device nothing comes before all others; then by
// place.
void rank_by_ratio(const SplitCosts& costs, std::vector<std::uint32_t>& out);

}  // namespace sluice::experts
