// The score window: the specification's vector, and random runs against means and victims written plainly.
#include "experts/cache/score_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>

namespace sluice::experts {
namespace {

using testing::DoubleNear, testing::ElementsAre, testing::Pointwise;

const std::vector<std::vector<double>> kIterations = {
    {.4, .3, .2, .05, .05}, {.1, .5, .2, .15, .05}, {.05, .15, .3, .4, .1}};
const std::vector<std::uint8_t> kAll(5, 1), kNone(5, 0);

TEST(ScoreWindow, AnswersTheVectors) {
  ScoreWindow three(5, 3), two(5, 2);
  for (const auto& scores : kIterations) {
    three.on_iteration(scores);
    two.on_iteration(scores);
  }
  EXPECT_THAT(three.means(), Pointwise(DoubleNear(1e-6), {.183333, .316667, .233333, .2, .066667}));
  EXPECT_EQ(three.victim(kAll, kNone, std::vector<std::int64_t>(5)), 4u);
  EXPECT_THAT(two.means(), Pointwise(DoubleNear(1e-9), {.075, .325, .25, .275, .075}));
  EXPECT_EQ(two.victim(kAll, kNone, std::vector<std::int64_t>{7, 9, 9, 9, 3}), 4u);
  EXPECT_EQ(two.victim(kAll, kNone, std::vector<std::int64_t>{3, 9, 9, 9, 7}), 0u);
}

TEST(ScoreWindow, BeforeTheFirstIterationTheLeastRecentLeaves) {
  ScoreWindow window(5);
  EXPECT_THAT(window.means(), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(window.victim(kAll, kNone, std::vector<std::int64_t>{4, 2, -1, -1, 3}), 2u);
}

TEST(ScoreWindow, ShieldedExpertsStay) {
  ScoreWindow window(5, 3);
  for (const auto& scores : kIterations) window.on_iteration(scores);
  const std::vector<std::int64_t> used(5);
  EXPECT_EQ(window.victim(kAll, std::vector<std::uint8_t>{0, 0, 0, 0, 1}, used), 0u);
  EXPECT_EQ(window.victim(kAll, kAll, used), std::nullopt);
  EXPECT_EQ(window.victim(kNone, kNone, used), std::nullopt);
  ScoreWindow empty(0);
  EXPECT_EQ(empty.victim({}, {}, {}), std::nullopt);
}

// A long run leaves no trace of what has left the window: the same two iterations give the same bits whatever
// came before them.
TEST(ScoreWindow, ForgetsWhatHasLeftTheWindow) {
  ScoreWindow fresh(5, 2), old(5, 2);
  for (int i = 0; i < 1000; ++i) old.on_iteration(kIterations[static_cast<std::size_t>(i) % 3]);
  for (const auto& scores : {kIterations[2], kIterations[0]}) {
    fresh.on_iteration(scores);
    old.on_iteration(scores);
  }
  EXPECT_TRUE(std::ranges::equal(fresh.means(), old.means()));
}

TEST(ScoreWindow, FollowsTheRuleOnRandomRuns) {
  constexpr std::uint64_t kSeed = 23;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int run = 0; run < 20000 && !testing::Test::HasFailure(); ++run) {
    const std::size_t n = 1 + random() % 8, size = 1 + random() % 5, iterations = random() % 9;
    ScoreWindow window(static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(size));
    std::vector<std::vector<double>> seen;
    for (std::size_t i = 0; i < iterations; ++i) {
      std::vector<double> scores(n);
      for (double& s : scores) s = static_cast<double>(random() % 4) / 8;
      window.on_iteration(scores);
      seen.push_back(scores);
      if (random() % 2 == 0) window.means();  // asking changes nothing
    }
    std::vector<double> mean(n, 0.0);
    const std::size_t first = seen.size() > size ? seen.size() - size : 0;
    for (std::size_t e = 0; e < n && first < seen.size(); ++e) {
      for (std::size_t i = first; i < seen.size(); ++i) mean[e] += seen[i][e];
      mean[e] /= static_cast<double>(seen.size() - first);
    }
    EXPECT_TRUE(std::ranges::equal(window.means(), mean)) << "run " << run;

    std::vector<std::uint8_t> resident(n), shielded(n);
    std::vector<std::int64_t> used(n);
    std::vector<std::tuple<double, std::int64_t, std::uint32_t>> leaving;
    for (std::uint32_t e = 0; e < n; ++e) {
      resident[e] = random() % 2;
      shielded[e] = random() % 4 == 0;
      used[e] = static_cast<std::int64_t>(random() % 3) - 1;
      if (resident[e] != 0 && shielded[e] == 0) leaving.push_back({mean[e], used[e], e});
    }
    const auto victim = window.victim(resident, shielded, used);
    EXPECT_EQ(victim.has_value(), !leaving.empty()) << "run " << run;
    if (!leaving.empty()) {
      EXPECT_EQ(victim, std::get<2>(*std::ranges::min_element(leaving))) << "run " << run;
    }
  }
}

}  // namespace
}  // namespace sluice::experts
