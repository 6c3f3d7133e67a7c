#include "experts/prefetch/prefetch_trial.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <iostream>
#include <random>

namespace sluice::experts {
namespace {

// Steps that need 0 to 2 MiB of a disk of 1 GiB/s, and 1 ms beside; read-ahead wastes `in_vain` of what is
// needed, and makes a step so many times as long.
struct Steps {
  double factor = 1, in_vain = 0;
  double noise = 0.05;  // share of the time, either way
};

struct Outcome {
  int with = 0, steps = 0;
  Bytes wasted = 0, needed = 0;
  double share() const { return static_cast<double>(with) / steps; }
};

Outcome run(PrefetchTrial& trial, std::mt19937_64& random, const Steps& kind, int steps) {
  Outcome outcome;
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < steps; ++i) {
    const bool ahead = trial.begin_step();
    const auto needed = static_cast<Bytes>(unit(random) * 2 * static_cast<double>(kMiB));
    double seconds = 1e-3 + static_cast<double>(needed) / static_cast<double>(kGiB);
    seconds *= (ahead ? kind.factor : 1) * (1 + kind.noise * (2 * unit(random) - 1));
    const Bytes wasted = ahead ? static_cast<Bytes>(kind.in_vain * static_cast<double>(needed)) : 0;
    trial.end_step(seconds, needed, wasted);
    outcome.with += ahead ? 1 : 0;
    outcome.steps += 1;
    outcome.wasted += wasted;
    outcome.needed += needed;
  }
  return outcome;
}

class PrefetchTrialTest : public ::testing::Test {
 protected:
  PrefetchTrialTest() { std::cout << "seed " << kSeed << '\n'; }
  static constexpr std::uint64_t kSeed = 7;
  std::mt19937_64 random_{kSeed};
  PrefetchTrial trial_;
};

TEST_F(PrefetchTrialTest, GoesOnWhereItSavesTime) {
  const Outcome all = run(trial_, random_, {.factor = 0.8, .in_vain = 0.3}, 1000);
  EXPECT_TRUE(trial_.decided());
  EXPECT_TRUE(trial_.pays());
  EXPECT_GT(all.share(), 0.9);
}

TEST_F(PrefetchTrialTest, StopsWhereTheDiskHasNoTimeToSpare) {
  run(trial_, random_, {.factor = 1.3, .in_vain = 0.3}, 40);
  ASSERT_TRUE(trial_.decided());
  EXPECT_FALSE(trial_.pays());
  EXPECT_GT(trial_.seconds_with(), 1.1 * trial_.seconds_without());
  const Outcome then = run(trial_, random_, {.factor = 1.3, .in_vain = 0.3}, 1000);
  EXPECT_GT(then.with, 0);       // it is tried again
  EXPECT_LT(then.share(), 0.1);  // but seldom
  EXPECT_LT(then.wasted, then.needed / 33);
}

// A third of what is read is read for nothing, and a step takes as long as without: nothing is won by it.
TEST_F(PrefetchTrialTest, WhatIsReadInVainMustSaveTime) {
  run(trial_, random_, {.factor = 1, .in_vain = 0.5, .noise = 0}, 200);
  EXPECT_FALSE(trial_.pays());
  PrefetchTrial precise;
  run(precise, random_, {.factor = 0.97, .in_vain = 0, .noise = 0}, 200);
  EXPECT_TRUE(precise.pays());
}

TEST_F(PrefetchTrialTest, NoticesThatTheDiskHasChanged) {
  run(trial_, random_, {.factor = 1.3, .in_vain = 0.3}, 300);
  EXPECT_FALSE(trial_.pays());
  run(trial_, random_, {.factor = 0.6, .in_vain = 0.3}, 3000);
  EXPECT_TRUE(trial_.pays());
  run(trial_, random_, {.factor = 1.5, .in_vain = 0.3}, 3000);
  EXPECT_FALSE(trial_.pays());
}

// Steps with read-ahead happen to need twice as much: they take longer, and not because of it.
TEST_F(PrefetchTrialTest, StepsThatNeedMoreAreComparedAtTheSameNeed) {
  std::uniform_real_distribution<double> unit(0.5, 1.5);
  for (int i = 0; i < 200; ++i) {
    const bool ahead = trial_.begin_step();
    const auto needed = static_cast<Bytes>((ahead ? 2 : 1) * unit(random_) * static_cast<double>(kMiB));
    trial_.end_step((ahead ? 0.9 : 1.0) * 1e-3 + static_cast<double>(needed) / static_cast<double>(kGiB),
                    needed, 0);
  }
  EXPECT_NEAR(trial_.seconds_without() - trial_.seconds_with(), 1e-4, 1e-5);
  EXPECT_TRUE(trial_.pays());
}

TEST_F(PrefetchTrialTest, OneStepThatWasHeldUpDecidesNothing) {
  run(trial_, random_, {.factor = 0.8, .in_vain = 0.1}, 100);
  while (!trial_.begin_step()) trial_.end_step(2e-3, kMiB, 0);
  trial_.end_step(10, kMiB, 0);  // seconds: the machine slept
  EXPECT_TRUE(trial_.pays());
}

}  // namespace
}  // namespace sluice::experts
