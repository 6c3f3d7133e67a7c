// Helpers for tests of routers. Header only; production code does not include it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "experts/routing/routing_script.h"

namespace sluice::experts {

// Two sequences of random choices, each of 1 to 7 tokens.
inline RoutingScript random_script(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k,
                                   std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RoutingScript script(layers, top_k, "random");
  std::vector<std::uint16_t> ids(experts);
  for (std::size_t sequence = 0; sequence < 2; ++sequence) {
    script.begin_sequence();
    for (std::uint64_t tokens = 1 + random() % 7; tokens > 0; --tokens) {
      script.add_token(sequence);
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        for (std::uint32_t e = 0; e < experts; ++e) ids[e] = static_cast<std::uint16_t>(e);
        std::ranges::shuffle(ids, random);
        std::sort(ids.begin(), ids.begin() + top_k);
        script.set(sequence, layer, std::span(ids).first(top_k));
      }
    }
  }
  return script;
}

}  // namespace sluice::experts
