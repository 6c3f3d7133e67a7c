#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

std::vector<ExpertId> of_layer(std::uint16_t layer, const std::vector<std::uint16_t>& indices) {
  std::vector<ExpertId> ids;
  for (const std::uint16_t index : indices) ids.push_back({layer, index});
  return ids;
}

// Two experts of every token, and two that never come again soon: LRU lets the latter wash the former out.
TEST(ReuseCache, KeepsWhatIsUsedOften) {
  const EqualSizes one({.full = 1});
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    std::size_t hits[2] = {};
    for (const std::size_t which : {0u, 1u}) {
      Residency cache(make_cache(which == 0 ? "lru" : "reuse", {}), one, 4);
      std::mt19937_64 random(seed);
      for (int e = 0; e < 400; ++e) {
        const auto hot = static_cast<std::uint16_t>(random() % 3);
        const auto cold = static_cast<std::uint16_t>(3 + random() % 40);
        hits[which] += cache.on_event(of_layer(0, {hot, cold})).hits.size();
      }
    }
    EXPECT_GT(hits[1], hits[0]);
    EXPECT_GE(hits[1], 380u);  // the hot ones have about 400 uses
  }
}

// A prompt that uses everything leaves those that its tokens use most.
TEST(ReuseCache, KeepsWhatAPromptUsedMost) {
  const EqualSizes one({.full = 1});
  Residency cache(make_cache("reuse", {}), one, 2);
  const std::vector<std::uint32_t> tokens = {3, 40, 1, 60, 2, 14};
  const EventOutcome& outcome =
      cache.on_event(of_layer(0, {0, 1, 2, 3, 4, 5}), {}, tokens, {},
                     {.step = StepKind::kPrompt, .layer_tokens = tokens, .tokens = 60});
  EXPECT_EQ(outcome.misses.size(), 6u);
  ASSERT_EQ(cache.resident().size(), 2u);
  EXPECT_EQ(cache.resident()[0].id, (ExpertId{0, 1}));
  EXPECT_EQ(cache.resident()[1].id, (ExpertId{0, 3}));
}

// One cache of several layers gives the room to the layer that needs it.
TEST(ReuseCache, ComparesLayers) {
  const EqualSizes one({.full = 1});
  Residency cache(make_cache("reuse", {}), one, 6);
  std::mt19937_64 random(5);
  for (int e = 0; e < 300; ++e) {
    cache.on_event(of_layer(0, {0, 1}), {}, {}, {}, {.layer = 0});
    cache.on_event(of_layer(1, {static_cast<std::uint16_t>(random() % 30)}), {}, {}, {}, {.layer = 1});
    if (e > 20) {
      EXPECT_TRUE(cache.computable({0, 0}) && cache.computable({0, 1})) << e;
    }
  }
}

}  // namespace
}  // namespace sluice::experts
