#include "engine/plan/ranked_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/plan/pool_plan.h"

namespace sluice::engine::ranked_reads_test {
namespace {

// 8 experts of 1000 bytes in memory, of which a step uses 2; read at 1 byte a microsecond.
Profile example() {
  Profile profile;
  profile.model = {.architecture = "x",
                   .codec = "none",
                   .layers = 3,
                   .experts = 8,
                   .top_k = 2,
                   .tensors = 2,
                   .chunks = 0,
                   .full = 1000};
  profile.machine.threads = 2;
  profile.u = {500e-6, 0};
  profile.p = {100e-6, 0};
  profile.p_of_tokens = {{1, {100e-6, 0}}};
  profile.rest = {900e-6, 0};
  return profile;
}

TEST(ReadForecast, WhatIsNeededIsWhatUsedExpertsLack) {
  const std::vector<double> f = {0.9, 0.6, 0.3, 0.2}, missing = {0, 0, 10, 100};
  EXPECT_NEAR(needed_bytes({f, missing}), 0.3 * 10 + 0.2 * 100, 1e-12);
}

TEST(ReadForecast, WrongGuessesAreExpertsThatMightHaveBeenUsed) {
  const std::vector<double> missing = {0, 0, 100, 100};
  const std::vector<double> even(4, 0.5), sure = {1, 1, 0, 0}, leaning = {0.9, 0.9, 0.1, 0.1};
  EXPECT_NEAR(named_by_stream({even, missing}).right, 0.7 * 100, 1e-12);
  EXPECT_NEAR(named_by_stream({even, missing}).wrong, 0.3 * 2 * 50, 1e-12);  // half of them are missing
  EXPECT_EQ(named_by_stream({sure, missing}).wrong, 0);                      // nothing to be wrong about
  const std::vector<double> wide = {0.7, 0.7, 0.3, 0.3};
  EXPECT_NEAR(named_by_stream({wide, missing}).wrong, 0.3 * 2 * 50, 1e-12);
  // Fewer than three in ten are wrong where fewer than that are open.
  EXPECT_NEAR(named_by_stream({leaning, missing}).wrong, 2 * 0.1 * 0.9 * 100, 1e-12);
  EXPECT_NEAR(named_by_stream({leaning, missing}).right, (1 - 4 * 0.1 * 0.9 / 2) * 2 * 0.1 * 100, 1e-12);
}

// A text that used the same 4 of 32 experts in all but one of a million steps.
TEST(ReadForecast, ExpertsThatAreNeverUsedAreNotReadInVain) {
  constexpr double kOnce = 1e-6, kBytes = 1 << 20;
  std::vector<double> f(32, 4 * kOnce / 28), missing(32, kBytes);
  std::fill_n(f.begin(), 4, 1 - kOnce);
  std::fill_n(missing.begin(), 4, 0.0);
  const NamedAhead ahead = named_by_stream({f, missing});
  EXPECT_GT(ahead.wrong, 0);
  EXPECT_LE(ahead.wrong, 4 * kOnce * kBytes);
  EXPECT_NEAR(ahead.right, needed_bytes({f, missing}), 1e-5 * kBytes * kOnce);
}

// Against sums written out: what is named is as much as a step uses, and nothing that is wrong in a rank is
// likelier than that the rank was named blindly and not used.
TEST(ReadForecast, NoRankIsNamedInVainMoreOftenThanByABlindGuess) {
  const std::uint64_t seed = 20261124;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> f(1 + random() % 64);
    const double sharpness = 1 + 8 * share(random);
    for (double& p : f) p = std::pow(share(random), sharpness);
    for (std::size_t one = 0; one < f.size(); ++one) {
      std::vector<double> missing(f.size(), 0);
      missing[one] = 1;  // then `wrong` is the probability of this rank
      EXPECT_LE(named_by_stream({f, missing}).wrong, f[one] * (1 - f[one]) + 1e-12);
    }
    const std::vector<double> all(f.size(), 1);
    const NamedAhead ahead = named_by_stream({f, all});
    double used = 0;
    for (const double p : f) used += p;
    EXPECT_NEAR(ahead.right + ahead.wrong, used, 1e-9);
    EXPECT_LE(ahead.wrong, 0.3 * used + 1e-12);
  }
}

TEST(ReadForecast, APlanHasWhatReadAheadReadsInVain) {
  PoolPlanRequest request{.memory = 3 * 4000};  // half of the experts
  const PoolPlan none = plan_pools(example(), request);
  EXPECT_EQ(none.chosen.wasted_bytes, 0);
  EXPECT_GT(none.chosen.disk_bytes, 0);
  request.prefetch = "stream";
  const PoolPlan ahead = plan_pools(example(), request);
  EXPECT_EQ(ahead.chosen.slots.f, none.chosen.slots.f);
  EXPECT_EQ(ahead.chosen.disk_bytes, none.chosen.disk_bytes);
  ASSERT_TRUE(ahead.chosen.wasted_bytes);
  EXPECT_GT(*ahead.chosen.wasted_bytes, 0);
  EXPECT_GT(ahead.chosen.step_s, none.chosen.step_s);  // demand waits behind some of it
  request.prefetch = "eam";
  EXPECT_FALSE(plan_pools(example(), request).chosen.wasted_bytes);
  // All of them are in memory: there is nothing to read.
  request = {.memory = 3 * 8000, .prefetch = "stream"};
  EXPECT_EQ(plan_pools(example(), request).chosen.wasted_bytes, 0);
}

// Where the disk has no time to spare, hardly anything is read ahead.
TEST(ReadForecast, ReadAheadTakesTheTimeThatTheDiskHasToSpare) {
  const PoolPlanRequest request{.memory = 3 * 4000, .prefetch = "stream"};
  Profile busy = example();
  busy.rest = busy.p = {1e-9, 0};
  busy.p_of_tokens = {{1, {1e-9, 0}}};
  EXPECT_LT(*plan_pools(busy, request).chosen.wasted_bytes,
            0.01 * *plan_pools(example(), request).chosen.wasted_bytes);
}

TEST(ReadForecast, ALayerThatNeedsAReadWaitsForTheDisksAnswer) {
  Profile slow = example();
  slow.latency = {1e-3, 0};
  const PoolPlanRequest half{.memory = 3 * 4000}, all{.memory = 3 * 8000};
  const double more = plan_pools(slow, half).chosen.step_s - plan_pools(example(), half).chosen.step_s;
  EXPECT_GT(more, 0);
  EXPECT_LE(more, 3 * 1e-3);
  EXPECT_EQ(plan_pools(slow, all).chosen.step_s, plan_pools(example(), all).chosen.step_s);
}

// Random costs of split experts, and a disk that answers soon or late: what is chosen is never expected to be
// slower than keeping whole experts; where the disk answers at once, it is what the paper's planner says.
TEST(PoolPlan, NothingIsChosenThatIsExpectedToBeSlowerThanWholeExperts) {
  const std::uint64_t seed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-7, -3);
  const auto seconds = [&] { return Measured{std::pow(10, exponent(random)), 0}; };
  int gave_way = 0;
  for (int round = 0; round < 300; ++round) {
    Profile profile = example();
    profile.model.codec = "zstd";
    profile.model.chunks = 4;
    profile.model.sm = 500;
    profile.model.exp = 150;
    profile.u = seconds(), profile.v = seconds(), profile.c = seconds(), profile.merge = seconds();
    profile.p = seconds(), profile.p_of_tokens = {{1, profile.p}};
    const PoolPlanRequest request{.memory = 3 * (1000 + random() % 7000),
                                  .prefetch = random() % 2 == 0 ? "none" : "stream"};
    const PoolPlan at_once = plan_pools(profile, request);
    profile.latency = seconds();
    const PoolPlan plan = plan_pools(profile, request);
    EXPECT_LE(plan.chosen.step_s, plan.f_only.step_s) << "round " << round;
    if (request.prefetch == "none") {
      EXPECT_LE(at_once.chosen.expected.cost, at_once.f_only.expected.cost + 1e-15) << "round " << round;
      gave_way += plan.gamma.f == 1 && at_once.gamma.f < 1;
    }
  }
  EXPECT_GT(gave_way, 0);
}

}  // namespace
}  // namespace sluice::engine::ranked_reads_test
