#include "lab/ask/ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::lab {

Ranks parse_ranks(const JsonObject& line) {
  constexpr std::size_t kMostCells = 1 << 22;  // cells of tables with N rows of k
  Ranks ranks{.f = numbers(line, "f", 0, 1)};
  if (!std::ranges::is_sorted(ranks.f, std::greater())) line.fail("f", "numbers in descending order");
  const auto n = static_cast<std::int64_t>(ranks.f.size());
  if (n > kMostExperts) line.fail("f", "at most 65536 numbers");
  const std::int64_t k = line.integer("k", 1, n);
  if (static_cast<std::size_t>(n * k) > kMostCells) line.fail("k", "no more than 2^22 / N");
  const double sum = std::accumulate(ranks.f.begin(), ranks.f.end(), 0.0);
  if (!(std::abs(sum - static_cast<double>(k)) <= 1e-6 * static_cast<double>(k))) {
    line.fail("f", "numbers whose sum is k = " + std::to_string(k) + ", not " + std::to_string(sum));
  }
  ranks.k = static_cast<std::uint32_t>(k);
  return ranks;
}

}  // namespace sluice::lab
