#include "engine/batch/prompt_shares.h"

#include <algorithm>
#include <numeric>

namespace sluice::engine {

std::vector<std::size_t> prompt_shares(std::span<const std::size_t> needs, std::size_t chunk) {
  std::vector<std::size_t> shares(needs.size(), 0);
  if (needs.empty()) return shares;
  const std::size_t most = needs.size() == 1 ? chunk : std::max<std::size_t>(1, chunk - (chunk + 7) / 8);
  shares[0] = std::min(needs[0], most);
  std::size_t room = chunk - shares[0];
  std::vector<std::size_t> others(needs.size() - 1);
  std::iota(others.begin(), others.end(), std::size_t{1});
  std::ranges::stable_sort(others, {}, [&](std::size_t i) { return needs[i]; });
  for (const std::size_t i : others) {
    if (needs[i] > room) break;
    shares[i] = needs[i];
    room -= needs[i];
  }
  shares[0] += std::min(needs[0] - shares[0], room);
  return shares;
}

}  // namespace sluice::engine
