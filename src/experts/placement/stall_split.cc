#include "experts/placement/stall_split.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::experts {

StallTimes StallSplit::split(const StallCosts& costs, std::span<std::uint8_t> on_device) {
  const std::size_t n = costs.tokens.size();
  SLUICE_CHECK(costs.resident.size() == n && costs.host.size() == n && costs.compute.size() == n &&
               costs.transfer.size() == n);
  SLUICE_CHECK(on_device.size() == n);
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    if (costs.resident[a] != costs.resident[b]) return costs.resident[a] != 0;
    return costs.tokens[a] != costs.tokens[b] ? costs.tokens[a] > costs.tokens[b] : a < b;
  });
  std::ranges::fill(on_device, std::uint8_t{0});

  StallTimes times;
  std::uint32_t slots = costs.slots;
  std::size_t left = 0, right = n;  // [left, right) is not decided
  while (left < right) {
    const std::uint32_t first = order_[left], last = order_[right - 1];
    const bool moves = costs.transfer[first] > 0, needs_slot = costs.resident[first] == 0;
    const double arrival = moves ? times.link + costs.transfer[first] : 0;
    const double stall = std::max(0.0, arrival - times.device);
    const double device = times.device + stall + costs.compute[first];
    const double host = times.host + costs.host[last];
    if (device <= host && !(needs_slot && slots == 0)) {
      on_device[first] = 1;
      times.device = device;
      times.stall += stall;
      if (moves) times.link = arrival;
      slots -= needs_slot && slots != kAnySlots ? 1 : 0;
      ++left;
    } else {
      times.host = host;
      --right;
    }
  }
  return times;
}

}  // namespace sluice::experts
