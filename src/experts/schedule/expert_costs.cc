#include "experts/schedule/expert_costs.h"

#include <algorithm>

namespace sluice::experts {

double ComputeTime::of(std::uint32_t tokens) const {
  if (measured.empty()) return fixed + per_token * tokens;
  auto high = std::ranges::lower_bound(measured, tokens, {}, &std::pair<std::uint32_t, double>::first);
  if (high == measured.end()) --high;
  if (high == measured.begin() && measured.size() > 1 && high->first < tokens) ++high;
  if (high == measured.begin()) return high->second;
  const auto low = high - 1;
  const double slope = (high->second - low->second) / (high->first - low->first);
  return std::max(0.0, low->second + slope * (static_cast<double>(tokens) - low->first));
}

}  // namespace sluice::experts
