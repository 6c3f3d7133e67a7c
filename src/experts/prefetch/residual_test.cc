// DALI's prediction: the mean difference of gate inputs, the scores of the shifted inputs, and what is
// counted and ordered from them.
#include "experts/prefetch/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>

#include "experts/prefetch/workload_forecast.h"

namespace sluice::experts::residual_test {
namespace {

using testing::DoubleNear, testing::ElementsAre, testing::IsEmpty, testing::Pointwise;
using Row = std::vector<double>;
using Ids = std::vector<std::uint32_t>;

Ids ids(std::span<const std::uint32_t> some) { return {some.begin(), some.end()}; }

TEST(ResidualMean, AnswersTheVector) {
  ResidualMean residual(2, 2);
  EXPECT_THAT(residual.mean(0), IsEmpty());
  residual.add(0, Row{1, 0}, Row{2, 1});
  residual.add(0, Row{0, 1}, Row{1, 1});
  residual.add(0, Row{1, 1}, Row{2, 3});
  EXPECT_THAT(residual.mean(0), ElementsAre(1, 1));
}

TEST(ResidualMean, KeepsLayersApart) {
  ResidualMean residual(3, 1);
  residual.add(0, Row{1}, Row{4});
  residual.add(1, Row{4}, Row{2});
  residual.add(1, Row{4}, Row{6});
  EXPECT_THAT(residual.mean(0), ElementsAre(3));
  EXPECT_THAT(residual.mean(1), ElementsAre(0));
}

// Two experts look along the axes, one between them. Without the residual both tokens would choose 0.
TEST(ResidualPrediction, ShiftsTheInputOfTheGate) {
  ResidualPrediction prediction;
  const Row inputs = {2, 0, 1, 0}, gate = {1, 0, 0, 1, 1, 1};
  prediction.predict(2, 3, inputs, Row{0, 3}, gate);
  EXPECT_THAT(prediction.logits(), ElementsAre(2, 3, 5, 1, 3, 4));
  const double sum = std::exp(2.0) + std::exp(3.0) + std::exp(5.0);
  EXPECT_THAT(
      prediction.scores().first(3),
      Pointwise(DoubleNear(1e-15), Row{std::exp(2.0) / sum, std::exp(3.0) / sum, std::exp(5.0) / sum}));
  prediction.predict(2, 0, inputs, Row{0, 3}, {});
  EXPECT_THAT(prediction.logits(), IsEmpty());
  prediction.predict(1, 1, Row{700}, Row{300}, Row{1});  // exp(1000) is not finite
  EXPECT_THAT(prediction.scores(), ElementsAre(1));
}

TEST(WorkloadForecast, OrdersByTokensThenByScores) {
  WorkloadForecast forecast;
  const Row logits = {3, 2, 1, 0, 3, 0, 1, 2};
  const Row scores = {.6, .2, .1, .1, .5, .1, .1, .3};
  forecast.predict({.tokens = 2, .experts = 4, .top_k = 2, .logits = logits, .scores = scores});
  EXPECT_THAT(forecast.predicted(0), ElementsAre(0, 1));
  EXPECT_THAT(forecast.predicted(1), ElementsAre(0, 3));
  EXPECT_THAT(forecast.counts(), ElementsAre(2, 1, 0, 1));
  EXPECT_THAT(forecast.order(std::vector<std::uint8_t>(4), 9), ElementsAre(0, 3, 1));
  EXPECT_THAT(forecast.order(std::vector<std::uint8_t>(4), 2), ElementsAre(0, 3));
  EXPECT_THAT(forecast.order(std::vector<std::uint8_t>{1, 0, 0, 0}, 1), ElementsAre(3));
}

// SPEC §3.4 with sorted lists.
TEST(WorkloadForecast, FollowsTheRuleOnRandomSteps) {
  constexpr std::uint64_t kSeed = 31;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  ResidualPrediction prediction;
  WorkloadForecast forecast;
  for (int instance = 0; instance < 20000 && !testing::Test::HasFailure(); ++instance) {
    SCOPED_TRACE("instance " + std::to_string(instance));
    const std::size_t tokens = random() % 5, n = random() % 8, d = random() % 4,
                      k = n == 0 ? 0 : 1 + random() % n;
    const auto numbers = [&](std::size_t count) {
      Row row(count);
      for (double& x : row) x = static_cast<double>(random() % 7) - 3;
      return row;
    };
    const Row inputs = numbers(tokens * d), residual = numbers(d), gate = numbers(n * d);
    std::vector<std::uint8_t> resident(n);
    for (std::uint8_t& flag : resident) flag = random() % 3 == 0;
    prediction.predict(tokens, n, inputs, residual, gate);
    forecast.predict({.tokens = static_cast<std::uint32_t>(tokens),
                      .experts = static_cast<std::uint32_t>(n),
                      .top_k = static_cast<std::uint32_t>(k),
                      .logits = prediction.logits(),
                      .scores = prediction.scores()});

    std::vector<std::uint32_t> counts(n);
    Row mass(n);
    for (std::size_t t = 0; t < tokens; ++t) {
      std::vector<std::pair<double, std::uint32_t>> ranking;  // (-logit, id)
      double sum = 0;
      for (std::uint32_t e = 0; e < n; ++e) {
        double z = 0;
        for (std::size_t i = 0; i < d; ++i) z += gate[e * d + i] * (inputs[t * d + i] + residual[i]);
        ranking.push_back({-z, e});
        sum += std::exp(z);
      }
      for (const auto& [z, e] : ranking) {
        EXPECT_NEAR(prediction.scores()[t * n + e], std::exp(-z) / sum, 1e-12);
        mass[e] += prediction.scores()[t * n + e];
      }
      std::ranges::sort(ranking);
      Ids chosen;
      for (std::size_t i = 0; i < k; ++i) {
        chosen.push_back(ranking[i].second);
        ++counts[ranking[i].second];
      }
      std::ranges::sort(chosen);
      EXPECT_EQ(ids(forecast.predicted(static_cast<std::uint32_t>(t))), chosen);
    }
    EXPECT_EQ(ids(forecast.counts()), counts);
    std::vector<std::tuple<std::int64_t, double, std::uint32_t>> list;
    for (std::uint32_t e = 0; e < n; ++e)
      if (counts[e] > 0 && resident[e] == 0) list.push_back({-std::int64_t{counts[e]}, -mass[e], e});
    std::ranges::sort(list);
    const std::size_t size = random() % 5;
    Ids expected;
    for (std::size_t i = 0; i < std::min(size, list.size()); ++i) expected.push_back(std::get<2>(list[i]));
    EXPECT_EQ(ids(forecast.order(resident, size)), expected);
  }
}

}  // namespace
}  // namespace sluice::experts::residual_test
