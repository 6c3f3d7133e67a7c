// Recorded windows to frequencies by rank. SPEC §1.8.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "experts/rank_model.h"

namespace sluice::experts {
namespace {

constexpr std::uint64_t kLeastSteps = 64;
constexpr double kMostFrequent = 1 - 1e-6;

// Makes the sum k. Entries that would be above the limit are set to it, and the others share what is left.
void scale_to(double k, std::vector<double>& f) {
  std::vector<bool> cut(f.size());
  for (;;) {
    double left = k, sum = 0;
    for (std::size_t i = 0; i < f.size(); ++i) (cut[i] ? left : sum) += cut[i] ? -f[i] : f[i];
    if (sum <= 0) return;
    bool more = false;
    for (std::size_t i = 0; i < f.size(); ++i) {
      if (cut[i]) continue;
      f[i] *= left / sum;
      if (f[i] <= kMostFrequent) continue;
      f[i] = kMostFrequent;
      cut[i] = more = true;
    }
    if (!more) return;
  }
}

}  // namespace

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

std::uint32_t distinct_per_step(std::uint64_t accesses, std::uint64_t steps) {
  if (steps == 0) return 1;
  return std::max(1u, static_cast<std::uint32_t>(
                          std::lround(static_cast<double>(accesses) / static_cast<double>(steps))));
}

}  // namespace sluice::experts
