// Against brute force: interpolation by searching the segment, the order by least squares over all pools.
#include "experts/routing/loss_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace sluice::experts {
namespace {

std::vector<LossPoint> random_points(std::mt19937_64& random) {
  std::vector<LossPoint> points(random() % 9);
  for (LossPoint& point : points)
    point = {static_cast<double>(1 + random() % 20) / 20,
             static_cast<double>(static_cast<int>(random() % 41) - 10) / 100};
  return points;
}

// max over i <= k of min over j >= k of the mean of i … j: the least squares fit that never falls.
std::vector<double> min_max_fit(const std::vector<double>& values) {
  std::vector<double> fit(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i <= k; ++i) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t j = k; j < values.size(); ++j) {
        double sum = 0;
        for (std::size_t n = i; n <= j; ++n) sum += values[n];
        least = std::min(least, sum / static_cast<double>(j - i + 1));
      }
      most = std::max(most, least);
    }
    fit[k] = std::max(0.0, most);
  }
  return fit;
}

TEST(LossCurve, IsTheLeastSquaresFitThatDoesNotFall) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::vector<LossPoint> points = random_points(random);
    const LossCurve curve(points);
    std::vector<double> amounts, means;
    for (int twentieth = 1; twentieth <= 20; ++twentieth) {
      double sum = 0, count = 0;
      for (const LossPoint& point : points)
        if (point.amount == twentieth / 20.0) sum += point.loss, count += 1;
      if (count > 0) amounts.push_back(twentieth / 20.0), means.push_back(sum / count);
    }
    const std::vector<double> fit = min_max_fit(means);
    ASSERT_EQ(curve.knots().size(), fit.size() + 1);
    EXPECT_EQ(curve.at(0), 0);
    for (std::size_t i = 0; i < fit.size(); ++i) {
      EXPECT_EQ(curve.knots()[i + 1].amount, amounts[i]);
      EXPECT_NEAR(curve.at(amounts[i]), fit[i], 1e-12);
    }
  }
}

TEST(LossCurve, InterpolatesAndInverts) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const LossCurve curve(random_points(random));
    const std::span<const LossPoint> knots = curve.knots();
    double before = 0;
    for (int i = 0; i <= 200; ++i) {
      const double x = i / 200.0;
      if (x > knots.back().amount) {
        EXPECT_EQ(curve.at(x), std::numeric_limits<double>::infinity());
        continue;
      }
      double expected = 0;
      for (std::size_t k = 0; k + 1 < knots.size(); ++k) {
        const double width = knots[k + 1].amount - knots[k].amount, part = (x - knots[k].amount) / width;
        if (part >= 0 && part <= 1) expected = (1 - part) * knots[k].loss + part * knots[k + 1].loss;
      }
      EXPECT_NEAR(curve.at(x), expected, 1e-12);
      EXPECT_GE(curve.at(x), before - 1e-15);
      before = curve.at(x);
    }
    for (double loss = 0; loss < .4; loss += .0071) {
      const double most = curve.most(loss);
      ASSERT_LE(most, knots.back().amount);
      EXPECT_LE(curve.at(most), loss + 1e-12);
      if (most < knots.back().amount) {
        EXPECT_GT(curve.at(std::min(most + 1e-6, knots.back().amount)), loss);
      }
    }
    EXPECT_EQ(curve.most(-.01), 0);
  }
}

TEST(LossCurve, KnowsNothingBeyondWhatWasMeasured) {
  EXPECT_EQ(LossCurve().at(0), 0);
  EXPECT_EQ(LossCurve().most(1), 0);
  EXPECT_EQ(LossCurve().at(1e-9), std::numeric_limits<double>::infinity());
}

TEST(LossCurve, RefusesWhatIsNoPoint) {
  for (const LossPoint point : {LossPoint{-.1, 0}, LossPoint{1.1, 0}, LossPoint{std::nan(""), 0},
                                LossPoint{.5, std::nan("")}, LossPoint{.5, HUGE_VAL}})
    EXPECT_THROW(LossCurve({point}), Error);
}

}  // namespace
}  // namespace sluice::experts
