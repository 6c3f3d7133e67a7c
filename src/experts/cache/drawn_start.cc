#include "experts/cache/drawn_start.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace sluice::experts {

std::vector<Placed> drawn_start(const CacheConfig& config, const ExpertSizes& sizes, Bytes capacity) {
  const CachedLayers& layers = config.layers;
  std::vector<Placed> start;
  for (std::uint32_t i = 0; i < layers.layers; ++i) {
    const auto layer = static_cast<std::uint16_t>(layers.first + i);
    std::vector<std::uint16_t> drawn(layers.experts);
    std::iota(drawn.begin(), drawn.end(), std::uint16_t{0});
    std::mt19937_64 random(config.seed + layer);
    for (std::size_t left = drawn.size(); left > 1; --left)
      std::swap(drawn[left - 1], drawn[random() % left]);
    Bytes room = capacity / layers.layers;
    for (const std::uint16_t e : drawn) {
      const Bytes bytes = sizes.bytes({layer, e}).of(config.keep);
      if (bytes > room) break;
      room -= bytes;
      start.push_back({{layer, e}, config.keep});
    }
  }
  std::ranges::sort(start, {}, &Placed::id);
  return start;
}

}  // namespace sluice::experts
