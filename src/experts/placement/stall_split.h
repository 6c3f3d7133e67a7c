// HybriMoE's split of a layer: two pointers walk the experts, those on the device first, and the device's
// time counts how long it waits for an expert that is still on the link. HybriMoE as it is coded (arXiv
// 2504.05897 and its published code); SPEC §10, G10. O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/placement/split.h"

namespace sluice::experts {

// The active experts of one layer, ascending by id: their places break ties. (n) each, non-owning. All times
// are in one unit, finite and at least 0.
struct StallCosts {
  std::span<const std::uint32_t> tokens;
  std::span<const std::uint8_t> resident;  // 1: it has a place on the device, though it may be under way
  std::span<const double> host;            // time on the host
  std::span<const double> compute;         // time on the device once it is there
  // What is left of bringing the expert there: 0 if it is there, else its time on the link, where transfers
  // follow each other.
  std::span<const double> transfer;
  std::uint32_t slots = kAnySlots;  // how many experts that are not resident may be brought there
};

struct StallTimes {
  double device = 0;  // when the device ends, its waits included
  double host = 0;
  double stall = 0;  // how long the device waits
  double link = 0;   // how long the link is busy
};

// Allocates nothing once it has seen the largest layer. Thread-compatible.
class StallSplit {
 public:
  // Sets `on_device` (n) to 1 for the experts of the device, to 0 for the others. The device takes the next
  // expert of the order (resident before missing, then tokens descending, then place) if it ends no later
  // with it than the host would with the last one, and if there is a slot for it.
  StallTimes split(const StallCosts& costs, std::span<std::uint8_t> on_device);

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace sluice::experts
