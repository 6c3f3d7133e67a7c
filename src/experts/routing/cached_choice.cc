#include "experts/routing/cached_choice.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::experts {

void select_cache_prior(std::span<const std::uint32_t> ranking, std::span<const double> z,
                        std::span<const std::uint8_t> cached, double boost, std::uint32_t top_j,
                        std::uint32_t k, std::vector<std::uint32_t>& out) {
  SLUICE_CHECK(k <= ranking.size());
  out.resize(ranking.size());
  std::iota(out.begin(), out.end(), 0u);  // places in the ranking, which break ties
  const auto boosted = [&](std::uint32_t place) {
    const std::uint32_t id = ranking[place];
    return place < top_j || cached[id] != 0 ? z[id] + boost : z[id];
  };
  std::ranges::partial_sort(out, out.begin() + k, [&](std::uint32_t a, std::uint32_t b) {
    const double x = boosted(a), y = boosted(b);
    return x != y ? x > y : a < b;
  });
  out.resize(k);
  for (std::uint32_t& place : out) place = ranking[place];
}

void select_cumsum(std::span<const std::uint32_t> ranking, std::span<const double> probability,
                   std::span<const std::uint8_t> cached, double p, std::uint32_t top_j, std::uint32_t k,
                   std::vector<std::uint32_t>& out) {
  SLUICE_CHECK(k <= ranking.size());
  std::size_t prefix = ranking.size();
  double reached = 0;
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    reached += probability[ranking[i]];
    if (reached >= p) {
      prefix = std::max<std::size_t>(i + 1, k);
      break;
    }
  }
  out.clear();
  const auto take = [&](std::size_t begin, std::size_t end, auto&& wanted) {
    for (std::size_t i = begin; i < end && out.size() < k; ++i)
      if (wanted(ranking[i])) out.push_back(ranking[i]);
  };
  const auto any = [](std::uint32_t) { return true; };
  const std::size_t first = std::min<std::size_t>(top_j, ranking.size());
  take(0, first, any);
  take(first, prefix, [&](std::uint32_t id) { return cached[id] != 0; });
  take(first, prefix, [&](std::uint32_t id) { return cached[id] == 0; });
  take(std::max(first, prefix), ranking.size(), any);
}

}  // namespace sluice::experts
