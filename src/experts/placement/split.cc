#include "experts/placement/split.h"

#include <cmath>

#include "base/error.h"

namespace sluice::experts {

void check_sizes(const SplitCosts& costs, std::span<const std::uint8_t> on_device) {
  const std::size_t n = costs.size();
  SLUICE_CHECK(costs.host.size() == n && costs.device.size() == n && costs.resident.size() == n);
  SLUICE_CHECK(on_device.size() == n);
}

void rank_by_gap(const SplitCosts& costs, std::vector<RankedPlace>& out) {
  out.clear();
  out.reserve(costs.size());  // however few are active now
  for (std::uint32_t i = 0; i < costs.size(); ++i)
    if (costs.tokens[i] > 0) out.push_back({std::abs(costs.device[i] - costs.host[i]), i});
  std::ranges::sort(out, [](const RankedPlace& a, const RankedPlace& b) {
    return a.key != b.key ? a.key > b.key : a.place < b.place;
  });
}

void rank_by_ratio(const SplitCosts& costs, std::vector<std::uint32_t>& out) {
  out.clear();
  out.reserve(costs.size());
  for (std::uint32_t i = 0; i < costs.size(); ++i)
    if (costs.tokens[i] > 0) out.push_back(i);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const double device_a = costs.device[a], device_b = costs.device[b];
    if ((device_a == 0) != (device_b == 0)) return device_a == 0;
    const double gain_a = costs.host[a] * device_b, gain_b = costs.host[b] * device_a;
    return gain_a != gain_b ? gain_a > gain_b : a < b;
  };
  // Rounded products of times that lie many decades apart may contradict each other. A heap stays within its
  // bounds even then; std::sort would not.
  std::ranges::make_heap(out, before);
  std::ranges::sort_heap(out, before);
}

}  // namespace sluice::experts
