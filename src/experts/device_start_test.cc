#include "experts/device_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/core/equal_sizes.h"
#include "experts/device_caches.h"
#include "experts/layer_decider.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(DeviceStart, IsAnEventOfEachLayerThatACacheBeginsWith) {
  const EqualSizes sizes({.full = 1});
  for (const bool by_layer : {true, false}) {
    SCOPED_TRACE(by_layer);
    LayerPolicies policies;
    policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, 8));
    policies.placement = make_cpu_placement();
    policies.device.emplace().residencies =
        make_device_caches({.cache = by_layer ? "static-popular" : "static-layers",
                            .layers = 3,
                            .experts = 4,
                            .top_k = 2,
                            .slots = 2,
                            .workload = {.popularity = {{1, 4, 2, 3}, {9, 1, 8, 1}, {0, 0, 5, 6}}}});
    const LayerDecider decider(std::move(policies), {3, 2});
    std::vector<ExpertId> named;
    for (const StartEvent& event : start_events(decider)) {
      EXPECT_TRUE(std::ranges::is_sorted(event.experts));
      EXPECT_THAT(event.tokens, Each(1u));
      EXPECT_THAT(event.demand().experts, testing::ElementsAreArray(event.experts));
      ASSERT_EQ(event.device.uses.size(), event.experts.size());
      ASSERT_EQ(event.host.misses.size(), event.experts.size());
      EXPECT_TRUE(event.device.evicted.empty() && event.device.updates.empty() && event.host.hits.empty());
      for (std::size_t i = 0; i < event.experts.size(); ++i) {
        EXPECT_EQ(event.experts[i].layer, event.layer);
        EXPECT_EQ(event.device.uses[i].id, event.experts[i]);
        EXPECT_EQ(event.device.uses[i].from, DeviceBytes::kLink);
        EXPECT_TRUE(event.device.uses[i].stays);
        EXPECT_EQ(event.host.misses[i].id, event.experts[i]);
        EXPECT_TRUE(event.host.misses[i].parts.empty());  // the host begins empty, and stays so
        named.push_back(event.experts[i]);
      }
    }
    const auto& start = decider.device()->start();
    EXPECT_EQ(named.size(), 6u - (by_layer ? 0 : 2));
    ASSERT_EQ(named.size(), start.size());
    for (const DeviceUpdate& one : start) EXPECT_THAT(named, testing::Contains(one.id));
  }
}

}  // namespace
}  // namespace sluice::experts
