#include "experts/prefetch/prediction_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <vector>

#include "experts/prefetch/workload_forecast.h"

namespace sluice::experts {
namespace {

using Numbers = std::vector<std::uint32_t>;
using Scores = std::vector<double>;

TEST(TopPrediction, CountsWhatWasNamed) {
  TopPrediction check;
  check.expect(1, 3, Numbers{0, 4, 2});
  // The true top 3 are 4, then 1 before 3, of as many tokens, by their scores. 2 is active, 0 is not.
  const PredictionCounts counts = check.observe(1, Numbers{0, 2, 1, 2, 5}, Scores{.9, .3, .1, .2, .5});
  EXPECT_EQ(counts.predicted, 3u);
  EXPECT_EQ(counts.active, 2u);
  EXPECT_EQ(counts.top, 1u);
  EXPECT_EQ(counts.wanted, 3u);
  EXPECT_DOUBLE_EQ(counts.accuracy(), 1.0 / 3);
  EXPECT_EQ(check.observe(1, Numbers{0, 2, 1, 2, 5}, Scores(5)).predicted, 0u);  // once
}

TEST(TopPrediction, FewerAreWantedWhereFewerAreActive) {
  TopPrediction check;
  check.expect(2, 4, Numbers{3, 1});
  const PredictionCounts counts = check.observe(2, Numbers{1, 0, 0, 1}, Scores(4));
  EXPECT_EQ(counts.predicted, 2u);
  EXPECT_EQ(counts.top, 1u);
  EXPECT_EQ(counts.wanted, 2u);
  EXPECT_EQ(counts.accuracy(), .5);
}

TEST(TopPrediction, AnotherLayerAndAForgottenOneAreNotCounted) {
  TopPrediction check;
  EXPECT_EQ(check.observe(0, Numbers{1}, Scores{1}).wanted, 0u);
  check.expect(1, 1, Numbers{0});
  EXPECT_EQ(check.observe(2, Numbers{1}, Scores{1}).wanted, 0u);
  EXPECT_EQ(check.observe(1, Numbers{1}, Scores{1}).top, 1u);
  check.expect(1, 1, Numbers{0});
  check.forget();
  EXPECT_EQ(check.observe(1, Numbers{1}, Scores{1}).wanted, 0u);
  EXPECT_EQ(PredictionCounts{}.accuracy(), 0);
}

// Scores that come true: the forecast of the true scores names the true top x, and is right in all of it.
TEST(TopPrediction, APerfectForecastIsRight) {
  constexpr std::uint64_t kSeed = 23;
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> number(0, 1);
  PredictionCounts all;
  for (int run = 0; run < 300; ++run) {
    const auto tokens = static_cast<std::uint32_t>(1 + random() % 9), experts = 12u, k = 3u;
    const auto x = static_cast<std::uint32_t>(1 + random() % 6);
    Scores scores(tokens * experts);
    for (double& score : scores) score = number(random);
    WorkloadForecast forecast;
    forecast.predict({.tokens = tokens, .experts = experts, .top_k = k, .logits = scores, .scores = scores});
    TopPrediction check;
    check.expect(1, x, forecast.top(x));
    Scores sums(experts);
    for (std::size_t i = 0; i < scores.size(); ++i) sums[i % experts] += scores[i];
    const PredictionCounts counts = check.observe(1, forecast.counts(), sums);
    EXPECT_EQ(counts.predicted, counts.wanted) << "run " << run;
    EXPECT_EQ(counts.top, counts.wanted) << "run " << run;
    EXPECT_LE(counts.top, counts.active);
    all += counts;
  }
  std::printf("seed %llu: %llu experts\n", static_cast<unsigned long long>(kSeed),
              static_cast<unsigned long long>(all.wanted));
  EXPECT_EQ(all.accuracy(), 1);
}

TEST(InputPrediction, IsTheMeanCosineOfTheFirstTokens) {
  InputPrediction check(3, 2);
  check.expect(1, std::vector<float>{1, 0, 0, 2});
  check.observe(1, std::vector<float>{3, 0, 1, 1});  // cosines 1 and the root of a half
  check.observe(1, std::vector<float>{0, 1, 0, 1});  // nobody expects it any more
  check.expect(2, std::vector<float>{1, 1});
  check.forget();
  check.observe(2, std::vector<float>{1, 1});
  ASSERT_EQ(check.means().size(), 3u);
  EXPECT_EQ(check.means()[0].tokens, 0u);
  EXPECT_EQ(check.means()[1].tokens, 2u);
  EXPECT_NEAR(check.means()[1].value(), (1 + std::sqrt(.5)) / 2, 1e-12);
  EXPECT_EQ(check.means()[2].tokens, 0u);
  const std::vector<float> many(2 * (InputPrediction::kTokens + 3), 1);
  check.expect(2, many);
  check.observe(2, many);
  EXPECT_EQ(check.means()[2].tokens, InputPrediction::kTokens);
  const std::vector<double> none = {0, 0}, some = {1, 2};
  EXPECT_EQ(cosine(std::span(none), std::span(some)), 0);
}

}  // namespace
}  // namespace sluice::experts
