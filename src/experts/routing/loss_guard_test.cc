#include "experts/routing/loss_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "experts/routing/precision.h"

namespace sluice::experts {
namespace {

double between(std::mt19937_64& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() % 1000001) / 1e6;
}

// Curves to 1, with plateaus and steep parts, and their uppers.
LossModel random_model(std::mt19937_64& random) {
  const auto curves = [&](LossCurve& middle, LossCurve& upper) {
    std::vector<LossPoint> points{{1, between(random, 0, .3)}};
    for (std::uint64_t i = random() % 6; i > 0; --i)
      points.push_back({between(random, .001, 1), between(random, -.01, .2)});
    middle = LossCurve(points);
    for (LossPoint& point : points) point.loss += between(random, 0, .02);
    upper = LossCurve(points);
  };
  LossModel model;
  model.high = between(random, 0, .01);
  model.high_upper = model.high + between(random, 0, .01);
  curves(model.precision, model.precision_upper);
  curves(model.routing, model.routing_upper);
  if (random() % 3 != 0) {
    model.both = between(random, 0, 100);
    model.both_upper = model.both + between(random, 0, 50);
  }
  return model;
}

Routing random_routing(std::mt19937_64& random, std::uint32_t tokens, std::uint32_t k) {
  Routing routing;
  routing.begin.assign(1, 0);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (std::uint32_t i = 0; i < k; ++i)
      routing.choices.push_back({static_cast<std::uint16_t>(i),
                                 random() % 2 == 0 ? Precision::kLow : Precision::kHigh,
                                 static_cast<float>(between(random, 0, 1))});
    routing.begin.push_back(static_cast<std::uint32_t>(routing.choices.size()));
  }
  return routing;
}

double low_of(const Routing& routing) {
  double low = 0;
  for (std::uint32_t t = 0; t + 1 < routing.begin.size(); ++t) low += low_share(routing.token(t));
  return low;
}

// A run that changes as much as it may, in tokens of random scores: the estimate never passes the limit, not
// even by one step.
TEST(LossGuard, NeverPassesTheLimit) {
  std::uint64_t used_up = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LossContract contract{.model = random_model(random)};
    contract.limit = contract.model.high_upper + between(random, 0, .1);
    if (random() % 2 == 0)
      contract.planned_low =
          contract.model.precision_upper.most(contract.limit - contract.model.high_upper) / 2;
    LossGuard guard(contract);
    double most = 0;
    for (int event = 0; event < 400; ++event) {
      const auto tokens = static_cast<std::uint32_t>(1 + random() % 3);
      double mass = 0;
      for (std::uint32_t t = 0; t < tokens; ++t) {
        const double allowed = guard.mass_allowance(t, mass), wanted = between(random, 0, .3);
        ASSERT_GE(allowed, 0);
        mass += random() % 4 == 0 ? 0 : std::min(allowed, wanted);
      }
      guard.add_routing(tokens, mass);
      ASSERT_LE(guard.estimate().upper, contract.limit + 1e-9) << "routing of event " << event;
      Routing routing = random_routing(random, tokens, 4);
      guard.limit_precision(routing);
      // The cache may compute an expert high that was wanted low.
      guard.add_precision(tokens, low_of(routing) * (random() % 3 == 0 ? .5 : 1));
      ASSERT_LE(guard.estimate().upper, contract.limit + 1e-9) << "precision of event " << event;
      ASSERT_LE(guard.estimate().total(), guard.estimate().upper + 1e-12);
      most = std::max(most, guard.estimate().upper);
    }
    used_up += most > contract.limit - .01 ? 1 : 0;
  }
  EXPECT_GT(used_up, 200u);  // otherwise a guard that forbids everything would pass
}

TEST(LossGuard, WithoutRoomNothingIsChanged) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LossContract contract{.model = random_model(random)};
    // Above 0 everywhere except at 0.
    contract.model.routing_upper = LossCurve({{.5, .1}, {1, .2}});
    contract.model.precision_upper = LossCurve({{.5, .1}, {1, .2}});
    contract.limit = seed % 2 == 0 ? contract.model.high_upper : contract.model.high_upper / 2;
    LossGuard guard(contract);
    for (int event = 0; event < 20; ++event) {
      ASSERT_EQ(guard.mass_allowance(), 0);
      guard.add_routing(1, 0);
      Routing routing = random_routing(random, 1, 4);
      guard.limit_precision(routing);
      ASSERT_EQ(low_of(routing), 0);
      guard.add_precision(1, 0);
    }
    EXPECT_EQ(guard.estimate().upper, contract.model.high_upper);
  }
}

// The guard reserves what precision is expected to cost from the first token on.
TEST(LossGuard, KeepsRoomForThePlannedPrecision) {
  LossContract contract{.model = {.precision = LossCurve({{1, .02}}),
                                  .routing = LossCurve({{1, 1}}),
                                  .precision_upper = LossCurve({{1, .02}}),
                                  .routing_upper = LossCurve({{1, 1}})},
                        .limit = .02,
                        .planned_low = 1};
  LossGuard guard(contract);
  EXPECT_EQ(guard.mass_allowance(), 0);
  contract.planned_low = .25;
  LossGuard quarter(contract);
  EXPECT_NEAR(quarter.mass_allowance(), .015, 1e-12);
  EXPECT_NEAR(quarter.mass_allowance(3, .01), .05, 1e-12);
  quarter.add_precision(1, .75);
  EXPECT_NEAR(quarter.mass_allowance(), .005, 1e-12);
}

// Each kind of change leaves room for the product of both.
TEST(LossGuard, KeepsRoomForWhatBothLoseTogether) {
  LossContract contract{.model = {.precision = LossCurve({{1, 1}}),
                                  .routing = LossCurve({{1, 1}}),
                                  .both = 4,
                                  .precision_upper = LossCurve({{1, 1}}),
                                  .routing_upper = LossCurve({{1, 1}}),
                                  .both_upper = 5},
                        .limit = .5,
                        .planned_low = .2};
  LossGuard guard(contract);
  EXPECT_NEAR(guard.mass_allowance(), .15, 1e-12);  // .2 + .15 + 5 · .2 · .15
  guard.add_routing(1, .1);
  Routing routing{.choices = {{0, Precision::kLow, .28f}, {1, Precision::kHigh, .72f}},
                  .begin = {0, 2},
                  .exact = {},
                  .exact_begin = {}};
  guard.limit_precision(routing);
  EXPECT_EQ(guard.raised(), 1u);  // .28 + .1 + 5 · .28 · .1 is above, .26 is not
  routing.choices = {{0, Precision::kLow, .26f}, {1, Precision::kHigh, .74f}};
  guard.limit_precision(routing);
  EXPECT_EQ(guard.raised(), 1u);
  guard.add_precision(1, .2);
  EXPECT_NEAR(guard.estimate().both, 4 * .2 * .1, 1e-12);
  EXPECT_NEAR(guard.estimate().total(), .38, 1e-12);
  EXPECT_NEAR(guard.estimate().upper, .4, 1e-12);
}

TEST(LossGuard, RaisesWholeTokensAndCountsThem) {
  LossContract contract{.model = {.precision = LossCurve({{1, 1}}),
                                  .routing = LossCurve({{1, 1}}),
                                  .precision_upper = LossCurve({{1, 1}}),
                                  .routing_upper = LossCurve({{1, 1}})},
                        .limit = .5};
  LossGuard guard(contract);
  Routing routing{.choices = {{0, Precision::kLow, .25f},
                              {1, Precision::kHigh, .75f},  // 0.25 of 0.5
                              {0, Precision::kLow, .25f},
                              {1, Precision::kLow, .75f},  // 1.25 of 1
                              {0, Precision::kLow, .75f},
                              {1, Precision::kHigh, .25f}},  // 1 of 1.5
                  .begin = {0, 2, 4, 6},
                  .exact = {},
                  .exact_begin = {}};
  guard.limit_precision(routing);
  EXPECT_EQ(guard.raised(), 1u);
  EXPECT_EQ(low_share(routing.token(0)), .25);
  EXPECT_EQ(low_share(routing.token(1)), 0);
  EXPECT_EQ(low_share(routing.token(2)), .75);
}

TEST(LossGuard, RefusesWhatIsNoLimit) {
  for (const double limit : {-.1, std::nan(""), HUGE_VAL})
    EXPECT_THROW(LossGuard({.model = {}, .limit = limit}), Error);
}

}  // namespace
}  // namespace sluice::experts
