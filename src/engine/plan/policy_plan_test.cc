#include "engine/plan/policy_plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace sluice::engine {
namespace {

using experts::ConstraintMode;
using experts::PrecisionMode;

PolicyPlan chosen(const std::function<void(EngineOptions&)>& change) {
  EngineOptions options;
  change(options);
  return choose_policies(options);
}

TEST(PolicyPlan, BeforeAModelIsOpenIsInSlicesIfAPrecisionIsChosen) {
  const PolicyPlan plain = chosen([](EngineOptions&) {});
  EXPECT_EQ(plain.cache->name, "reuse");
  EXPECT_EQ(plain.precision.mode, PrecisionMode::kFull);
  const PolicyPlan preset = chosen([](EngineOptions& o) { o.preset = "slicemoe"; });
  EXPECT_EQ(preset.cache->name, "slice-lru");
  EXPECT_EQ(preset.precision.mode, PrecisionMode::kDbsc);
  const PolicyPlan low = chosen([](EngineOptions& o) { o.precision = PrecisionMode::kLow; });
  EXPECT_EQ(low.cache->name, "slice-lru");
  EXPECT_EQ(low.slices.warmup.rho, 0);
}

TEST(PolicyPlan, KnowsWhetherAnybodyHasChosenThePrefetch) {
  EXPECT_TRUE(chosen([](EngineOptions&) {}).prefetch_is_free);
  EXPECT_TRUE(chosen([](EngineOptions& o) { o.preset = "auto"; }).prefetch_is_free);
  EXPECT_FALSE(chosen([](EngineOptions& o) { o.preset = "zipmoe"; }).prefetch_is_free);
  EXPECT_FALSE(chosen([](EngineOptions& o) { o.prefetch = "stream"; }).prefetch_is_free);
  EXPECT_FALSE(chosen([](EngineOptions& o) { o.recording = 1; }).prefetch_is_free);
  EXPECT_FALSE(
      chosen([](EngineOptions& o) { o.preset = "gpu-lru", o.device = "emulated"; }).prefetch_is_free);
}

// A lambda for the constraint hard alone; every other one takes the router's.
TEST(PolicyPlan, LimitsTakeTheRulesOfTheRouter) {
  const auto limits = [](ConstraintMode mode) {
    return chosen([&](EngineOptions& o) {
             o.router = "cache-prior";
             o.constraint = mode;
             o.limits.lambda = 0.25;
             o.cache_aware = {.lambda = 0.75, .top_j = 2};
           })
        .limits;
  };
  EXPECT_EQ(limits(ConstraintMode::kHard).lambda, 0.25);
  EXPECT_EQ(limits(ConstraintMode::kBoost).lambda, 0.75);
  EXPECT_EQ(limits(ConstraintMode::kAdaptive).lambda, 0.75);
  EXPECT_EQ(limits(ConstraintMode::kHard).top_j, 2u);
  EXPECT_EQ(limits(ConstraintMode::kBoost).top_j, 2u);
}

}  // namespace
}  // namespace sluice::engine
