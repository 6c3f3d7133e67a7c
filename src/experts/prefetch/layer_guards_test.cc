#include "experts/prefetch/layer_guards.h"

#include <gtest/gtest.h>

namespace sluice::experts {
namespace {

// Steps of 1000 in which a layer was allowed to name experts.
int allowed_steps(LayerGuards& guards, std::uint32_t layer, double saved, double cost) {
  int allowed = 0;
  for (int step = 0; step < 1000; ++step) {
    if (!guards.allows(layer)) continue;
    ++allowed;
    guards.add(layer, saved, cost);
  }
  return allowed;
}

TEST(LayerGuards, JudgeEachLayerByItself) {
  LayerGuards guards;
  EXPECT_EQ(allowed_steps(guards, 3, 2, 1), 1000);
  const int seldom = allowed_steps(guards, 1, 1, 2);
  EXPECT_GT(seldom, 20);  // it is tried again
  EXPECT_LT(seldom, 100);
  EXPECT_EQ(allowed_steps(guards, 3, 2, 1), 1000);
}

TEST(LayerGuards, LetGoOnWhatNeitherSavesNorCosts) {
  LayerGuards guards;
  EXPECT_EQ(allowed_steps(guards, 0, 0, 0), 1000);
}

}  // namespace
}  // namespace sluice::experts
