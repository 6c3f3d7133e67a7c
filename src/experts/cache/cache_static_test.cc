#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/registry.h"
#include "experts/test_traces.h"

namespace sluice::experts {
namespace {

class TenBytesEach final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = 10}; }
};

// Once all experts have been used, the first layers' experts are resident, in whatever order they came.
TEST(StaticCache, HoldsTheFirstLayersInTheEnd) {
  constexpr std::uint16_t kLayers = 4, kExperts = 6;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const TenBytesEach sizes;
    const std::size_t room = 1 + random() % (kLayers * kExperts + 3);
    Residency cache(make_cache("static", {}), sizes, room * 10 + 9);
    std::set<ExpertId> used;
    while (used.size() < kLayers * kExperts)
      for (std::uint16_t layer = 0; layer < kLayers; ++layer) {
        std::set<ExpertId> event;
        while (event.size() < 2) event.insert({layer, static_cast<std::uint16_t>(random() % kExperts)});
        cache.on_event(std::vector<ExpertId>(event.begin(), event.end()));
        used.insert(event.begin(), event.end());
      }
    std::set<ExpertId> expected, resident;
    for (const ExpertId id : used)
      if (expected.size() < room) expected.insert(id);
    for (const Placed& placed : cache.resident()) resident.insert(placed.id);
    EXPECT_EQ(resident, expected);
    // Afterwards nothing changes.
    for (std::uint16_t layer = 0; layer < kLayers; ++layer)
      EXPECT_TRUE(cache.on_event(std::vector<ExpertId>{{layer, 0}, {layer, kExperts - 1}}).evicted.empty());
  }
}

// Drawn by the seed, for each layer its share; what is used changes nothing.
TEST(StaticRandomCache, KeepsWhatWasDrawn) {
  constexpr std::uint16_t kLayers = 3, kExperts = 8, kSlots = 3;
  const TenBytesEach sizes;
  std::set<std::set<ExpertId>> drawn;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CacheConfig config{.seed = seed};
    config.layers = {0, kLayers, kExperts};
    Residency cache(make_cache("static-random", config), sizes, Bytes{kLayers} * kSlots * 10);
    cache.start();
    const auto there = [&] {
      std::set<ExpertId> ids;
      for (const Placed& placed : cache.resident()) ids.insert(placed.id);
      return ids;
    };
    const std::set<ExpertId> first = there();
    for (std::uint16_t layer = 0; layer < kLayers; ++layer)
      EXPECT_EQ(std::ranges::count(first, layer, &ExpertId::layer), kSlots);
    for (std::uint16_t e = 0; e < kExperts; ++e) {
      const EventOutcome& outcome = cache.on_event(std::vector<ExpertId>{{1, e}});
      EXPECT_EQ(outcome.hits.size(), first.contains({1, e}) ? 1u : 0u);
      EXPECT_TRUE(outcome.evicted.empty());
    }
    EXPECT_EQ(there(), first);
    drawn.insert(first);
  }
  EXPECT_GT(drawn.size(), 2u);
}

}  // namespace
}  // namespace sluice::experts
