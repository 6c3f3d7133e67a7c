// The rank model: the specification's vectors, and enumeration of all sets of k.
#include "experts/plan/rank_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"

namespace sluice::experts::rank_model_test {
namespace {

using testing::DoubleNear, testing::Pointwise;

const std::vector<double> kFour = {.9, .6, .3, .2}, kEight = {.95, .8, .5, .3, .2, .15, .07, .03};

// Inclusion probabilities by enumeration of all sets of k.
std::vector<double> brute_inclusion(std::span<const double> w, std::uint32_t k) {
  std::vector<double> f(w.size());
  double all = 0;
  for (std::uint32_t set = 0; set < 1u << w.size(); ++set) {
    if (std::popcount(set) != static_cast<int>(k)) continue;
    double product = 1;
    for (std::size_t i = 0; i < w.size(); ++i) product *= set >> i & 1 ? w[i] : 1;
    all += product;
    for (std::size_t i = 0; i < w.size(); ++i) f[i] += set >> i & 1 ? product : 0;
  }
  for (double& x : f) x /= all;
  return f;
}

// Descending, Σ = k: inclusion probabilities of random weights.
std::vector<double> random_f(std::uint32_t n, std::uint32_t k, std::mt19937_64& random) {
  std::vector<double> w(n);
  for (double& x : w) x = std::exp(static_cast<double>(random() % 8001) / 1000 - 4);
  std::vector<double> f = brute_inclusion(w, k);
  std::ranges::sort(f, std::greater());
  return f;
}

TEST(PoissonBinomial, VectorsOfTheSpecification) {
  EXPECT_THAT(poisson_binomial(std::vector{.5, .5}),
              Pointwise(DoubleNear(1e-15), std::vector<double>{.25, .5, .25}));
  EXPECT_THAT(poisson_binomial(std::vector{.1, .2, .3}),
              Pointwise(DoubleNear(1e-15), std::vector<double>{.504, .398, .092, .006}));
  EXPECT_THAT(poisson_binomial(std::vector{1., 0., .25}),
              Pointwise(DoubleNear(1e-15), std::vector<double>{0, .75, .25, 0}));
  EXPECT_THAT(poisson_binomial({}), Pointwise(DoubleNear(0), std::vector<double>{1}));
}

TEST(RankModel, VectorsOfTheSpecification) {
  for (const WeightUpdate update : {WeightUpdate::kOdds, WeightUpdate::kRatio}) {
    const RankModel four = make_rank_model(kFour, 2, update);
    std::vector<double> ratios;
    for (double w : four.w) ratios.push_back(w / four.w[3]);
    EXPECT_THAT(ratios,
                Pointwise(DoubleNear(2e-7), std::vector<double>{15.423168485, 3.400959680, 1.540929642, 1}));
    EXPECT_THAT(four.q, Pointwise(DoubleNear(1e-8),
                                  std::vector<double>{.844234547, .544448804, .351282648, .260034001}));
    EXPECT_THAT(four.phi, Pointwise(DoubleNear(1e-8), std::vector<double>{.034062429, .255739646, .428319663,
                                                                          .239892020, .041986242}));
    EXPECT_NEAR(four.w[0] * four.w[1] * four.w[2] * four.w[3], 1, 1e-12);
    const RankModel eight = make_rank_model(kEight, 3, update);
    EXPECT_THAT(eight.q, Pointwise(DoubleNear(1e-8),
                                   std::vector<double>{.924679694, .738185680, .470732176, .321706274,
                                                       .231786175, .181338171, .091013721, .040558108}));
    EXPECT_NEAR(eight.phi[3], .361122622, 1e-8);
  }
  EXPECT_EQ(make_rank_model(kFour, 2, WeightUpdate::kRatio, 1e-12).iterations, 129u);
  EXPECT_EQ(make_rank_model(kEight, 3, WeightUpdate::kRatio, 1e-12).iterations, 332u);
}

TEST(RankModel, ProbabilitiesOfPairs) {
  const RankModel four = make_rank_model(kFour, 2, WeightUpdate::kOdds, 1e-13);
  std::vector<double> pairs;
  double all = 0, entropy = 0;
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) all += four.w[a] * four.w[b];
  }
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) pairs.push_back(four.w[a] * four.w[b] / all);
  }
  EXPECT_THAT(pairs, Pointwise(DoubleNear(1e-9),
                               {.515133074, .233399951, .151466975, .051466975, .033399951, .015133074}));
  for (double p : pairs) entropy -= p * std::log(p);
  EXPECT_NEAR(entropy, 1.296824, 1e-6);
}

TEST(RankModel, UniformNeedsNoUpdate) {
  const RankModel model = make_rank_model(std::vector(8, .25), 2);
  EXPECT_EQ(model.iterations, 0u);
  EXPECT_THAT(model.q, Pointwise(DoubleNear(1e-12), std::vector(8, .25)));
  EXPECT_THAT(model.w, Pointwise(DoubleNear(1e-12), std::vector(8, 1.)));
}

TEST(RankModel, CertainAndImpossibleOnes) {
  const RankModel model = make_rank_model(std::vector{1., .7, .3, 0.}, 2);
  EXPECT_NEAR(model.w[1] / model.w[2], 7.0 / 3, 1e-8);
  EXPECT_TRUE(std::isinf(model.w[0]));
  EXPECT_EQ(model.w[3], 0);
  EXPECT_EQ(model.q[0], 1);
  EXPECT_EQ(model.q[3], 0);
  EXPECT_EQ(model.phi[0], 0);
  EXPECT_EQ(model.phi[4], 0);
  const RankModel all = make_rank_model(std::vector{1., 1.}, 2);
  EXPECT_THAT(all.phi, Pointwise(DoubleNear(0), std::vector<double>{0, 0, 1}));
  EXPECT_EQ(make_rank_model(std::vector{1., 1e-7}, 1).q[1], 0);  // within the tolerance of the sum
  EXPECT_EQ(make_rank_model(std::vector{1 - 1e-9}, 1).q[0], 1);
}

TEST(RankModel, SumsThatAreNotK) {
  EXPECT_THROW(make_rank_model(std::vector{.5, .4}, 1), Error);
  EXPECT_THROW(make_rank_model(std::vector{1.5, -.5}, 1), Error);
  EXPECT_THROW(make_rank_model(std::vector{std::nan(""), .5}, 1), Error);
  EXPECT_THROW(make_rank_model({}, 1), Error);
  EXPECT_THROW(make_rank_model({}, 0), Error);
}

TEST(Inclusion, EqualsEnumeration) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE("instance " + std::to_string(i));
    const auto n = static_cast<std::uint32_t>(2 + random() % 9);
    const auto k = static_cast<std::uint32_t>(1 + random() % (n - 1));
    std::vector<double> w(n);
    for (double& x : w) x = std::exp(static_cast<double>(random() % 20001) / 1000 - 10);
    EXPECT_THAT(inclusion(w, k), Pointwise(DoubleNear(1e-12), brute_inclusion(w, k)));
  }
}

TEST(RankModel, HasTheFrequenciesAskedFor) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE("instance " + std::to_string(i));
    const auto n = static_cast<std::uint32_t>(2 + random() % 9);
    const auto k = static_cast<std::uint32_t>(1 + random() % (n - 1));
    const std::vector<double> f = random_f(n, k, random);
    const RankModel model = make_rank_model(f, k);
    EXPECT_THAT(brute_inclusion(model.w, k), Pointwise(DoubleNear(2e-10), f));
    EXPECT_NEAR(std::accumulate(model.q.begin(), model.q.end(), 0.0), k, 1e-12 * n);
    for (std::uint32_t a = 1; a < n; ++a) {  // odds of the draws have the ratio of the weights
      EXPECT_NEAR(std::log(model.q[0] / (1 - model.q[0]) * (1 - model.q[a]) / model.q[a]),
                  std::log(model.w[0] / model.w[a]), 1e-9);
    }
  }
}

// Weights so large that products of k of them would overflow.
TEST(RankModel, ExtremeFrequencies) {
  std::vector<double> f(384, 1 - 1e-11);
  std::fill(f.begin() + 192, f.end(), 1e-11);
  const RankModel model = make_rank_model(f, 192);
  EXPECT_NEAR(std::accumulate(model.q.begin(), model.q.end(), 0.0), 192, 1e-6);
  for (double phi : model.phi) EXPECT_TRUE(std::isfinite(phi));
}

TEST(RankModel, OddsNeedFewIterations) {
  for (const std::uint32_t n : {8u, 32u, 64u, 128u}) {
    std::vector<double> f(n);
    double low = 0, high = 100;
    for (int i = 0; i < 200; ++i) {
      const double m = (low + high) / 2;
      for (std::uint32_t r = 0; r < n; ++r) f[r] = std::min(.98, m * std::pow(r + 1, -.8));
      (std::accumulate(f.begin(), f.end(), 0.0) < 4 ? low : high) = m;
    }
    EXPECT_LE(make_rank_model(f, 4).iterations, 15u) << n;
  }
}

RankWindow window(std::vector<std::uint64_t> counts, std::uint64_t steps) {
  return {std::move(counts), steps};
}

TEST(RankProfile, RanksPerWindowAndAverages) {
  const std::vector<RankWindow> windows = {window({10, 90, 100}, 100), window({64, 0, 64}, 64),
                                           window({63, 63, 0}, 63)};
  const RankProfile profile = make_rank_profile(windows, 2);
  EXPECT_EQ(profile.used, 2u);
  EXPECT_THAT(profile.f, Pointwise(DoubleNear(1e-15), std::vector<double>{1, .95, .05}));
  EXPECT_TRUE(make_rank_profile({}, 2).f.empty());
  EXPECT_EQ(make_rank_profile(std::vector{window({1}, 63)}, 1).used, 0u);
}

TEST(RankProfile, ScalesToTheSumAndCuts) {
  const RankProfile profile = make_rank_profile(std::vector{window({90, 50, 40, 20}, 100)}, 3);
  // 3 / 2 of all: .9 is cut; the rest goes to .5 : .4 : .2, of which .5 becomes .9090905, and so on.
  EXPECT_NEAR(profile.f[0], 1 - 1e-6, 1e-15);
  EXPECT_NEAR(std::accumulate(profile.f.begin(), profile.f.end(), 0.0), 3, 1e-12);
  EXPECT_NEAR(profile.f[1] / profile.f[2], 1.25, 1e-12);
  EXPECT_NEAR(profile.f[2] / profile.f[3], 2, 1e-12);
  // All entries are cut.
  EXPECT_THAT(make_rank_profile(std::vector{window({90, 50}, 100)}, 2).f,
              Pointwise(DoubleNear(1e-15), std::vector<double>{1 - 1e-6, 1 - 1e-6}));
  EXPECT_THROW(make_rank_profile(std::vector{window({0, 0}, 100)}, 1), Error);
}

TEST(RankProfile, WhatIsLeftForZerosIsSharedEvenly) {
  std::vector<double> f = {1, 0, 0};
  scale_to(2, f);
  EXPECT_THAT(f, Pointwise(DoubleNear(1e-12), std::vector<double>{1 - 1e-6, 0.5 + 5e-7, 0.5 + 5e-7}));
  f = {0, 0};
  scale_to(1, f);
  EXPECT_EQ(f, (std::vector<double>{0.5, 0.5}));
  f = {};
  scale_to(1, f);
  EXPECT_TRUE(f.empty());
}

}  // namespace
}  // namespace sluice::experts::rank_model_test
