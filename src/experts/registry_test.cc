#include "experts/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace sluice::experts
