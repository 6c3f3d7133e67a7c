#include "experts/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experts/device_presets.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

TEST(Registry, OnePresetIsWhatThereIsUsually) {
  EXPECT_EQ(std::ranges::count_if(presets(), &Preset::usual), 1);
  EXPECT_EQ(usual_preset().name, "auto");
  EXPECT_FALSE(usual_preset().sliced());
}

TEST(Registry, RowsOfPrefetchesSayWhatThePrefetchDoes) {
  const ExpertTransitions transitions(2, 4);
  for (const PrefetchPolicy& row : prefetch_policies()) {
    const auto made = row.make({.transitions = &transitions});
    EXPECT_EQ(row.predictor, made->predictor()) << row.name;
    EXPECT_EQ(row.prefetches, made->prefetches()) << row.name;
    EXPECT_EQ(row.prefetches, row.name != "none") << row.name;
    EXPECT_TRUE(row.prefetches || !row.guesses_known) << row.name;
  }
}

TEST(Registry, RoutersHaveRulesWhereTheyChangeTheSelectionThemselves) {
  for (const RouterPolicy& row : router_policies())
    EXPECT_EQ(row.rules != RouterRules::kNone, row.lossy && !row.scripted) << row.name;
}

TEST(DevicePresets, APlacementThatIsNamedHoldsForPromptsToo) {
  const DevicePreset& ncmoe = find_device_preset("ncmoe");
  const PlacementPolicy &cpu = find_placement("cpu"), &greedy = find_placement("greedy");
  EXPECT_EQ(prefill_placement(&ncmoe, nullptr, nullptr).policy, &find_placement("device"));
  EXPECT_EQ(prefill_placement(&ncmoe, nullptr, nullptr).from, 32u);
  EXPECT_EQ(prefill_placement(&ncmoe, &cpu, nullptr).policy, nullptr);
  EXPECT_EQ(prefill_placement(&ncmoe, &cpu, nullptr).from, 1u);
  EXPECT_EQ(prefill_placement(&ncmoe, &cpu, &greedy).policy, &greedy);
  EXPECT_EQ(prefill_placement(&ncmoe, nullptr, &greedy).from, 1u);
  EXPECT_EQ(prefill_placement(nullptr, &cpu, nullptr).policy, nullptr);
  EXPECT_EQ(prefill_placement(&find_device_preset("dali"), nullptr, nullptr).policy, nullptr);
}

TEST(DevicePresets, SayHowManyArePrefetchedAndWhetherThatIsGuarded) {
  EXPECT_EQ(usual_prefetch_size(nullptr, 8), 1u);
  EXPECT_EQ(usual_prefetch_size(&find_device_preset("dali"), 64), 4u);
  EXPECT_EQ(usual_prefetch_size(&find_device_preset("s-deepspeed"), 64), kAnyRequests);
  EXPECT_TRUE(guards_prefetch(nullptr));
  EXPECT_TRUE(guards_prefetch(&find_device_preset("dali-plus")));
  EXPECT_FALSE(guards_prefetch(&find_device_preset("dali")));
}

}  // namespace
}  // namespace sluice::experts
