// Turns recorded windows into frequencies by rank. SPEC §1.8.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "experts/plan/rank_model.h"

namespace sluice::experts {
namespace {

constexpr std::uint64_t kLeastSteps = 64;
constexpr double kMostFrequent = 1 - 1e-6;

}  // namespace

void scale_to(double k, std::vector<double>& f) {
  std::vector<bool> cut(f.size());
  for (bool more = true; more;) {
    double left = k, sum = 0;
    std::size_t free = 0;
    for (std::size_t i = 0; i < f.size(); ++i) {
      (cut[i] ? left : sum) += cut[i] ? -f[i] : f[i];
      free += cut[i] ? 0 : 1;
    }
    more = false;
    for (std::size_t i = 0; i < f.size(); ++i) {
      if (cut[i]) continue;
      f[i] = sum > 0 ? f[i] * (left / sum) : left / static_cast<double>(free);
      if (f[i] <= kMostFrequent) continue;
      f[i] = kMostFrequent;
      cut[i] = more = true;
    }
  }
}

RankProfile make_rank_profile(std::span<const RankWindow> windows, double k) {
  RankProfile profile;
  std::vector<std::uint64_t> sorted;
  for (const RankWindow& window : windows) {
    if (window.steps < kLeastSteps) continue;
    sorted = window.counts;
    std::ranges::sort(sorted, std::greater());
    profile.f.resize(sorted.size());
    for (std::size_t r = 0; r < sorted.size(); ++r) {
      profile.f[r] += static_cast<double>(sorted[r]) / static_cast<double>(window.steps);
    }
    ++profile.used;
  }
  for (double& f : profile.f) f /= static_cast<double>(profile.used);
  const double sum = std::accumulate(profile.f.begin(), profile.f.end(), 0.0);
  if (profile.used > 0 && sum == 0) {
    throw Error(ErrorKind::kInvalid, "no expert was active in any window of 64 steps or more").in("windows");
  }
  if (std::abs(sum - k) > 1e-9 * std::max(k, 1.0)) scale_to(k, profile.f);
  return profile;
}

}  // namespace sluice::experts
