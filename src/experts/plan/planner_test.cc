// The planner: the specification's vectors, and enumeration of all choices of k experts and of all shares.
#include "experts/plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"

namespace sluice::experts {
namespace {

const std::vector<double> kFour = {.9, .6, .3, .2}, kEight = {.95, .8, .5, .3, .2, .15, .07, .03};

LayerCosts costs(unsigned chunks, unsigned workers, double u, double v, double c) {
  return {.tensors = 3, .schedule = {.chunks = chunks, .workers = workers, .u = u, .v = v, .c = c}};
}

// Over all sets of k, by weight, with the estimate as the specification states it.
double brute_cost(const RankModel& ranks, const PoolSlots& slots, const LayerCosts& layer) {
  const ScheduleCosts& s = layer.schedule;
  double all = 0, sum = 0;
  for (std::uint32_t set = 0; set < 1u << ranks.w.size(); ++set) {
    if (std::popcount(set) != static_cast<int>(ranks.k)) continue;
    double weight = 1;
    std::array<double, 5> h{};
    for (std::uint32_t r = 0; r < ranks.w.size(); ++r) {
      if (!(set >> r & 1)) continue;
      weight *= ranks.w[r];
      const std::uint32_t ends[] = {slots.f, slots.f + slots.c, slots.f + slots.c + slots.s,
                                    slots.f + slots.c + slots.s + slots.e};
      h[static_cast<std::size_t>(std::ranges::find_if(ends, [r](std::uint32_t end) { return r < end; }) -
                                 ends)] += 1;
    }
    const double n = layer.tensors, k = ranks.k;
    const double sm = n * (k - h[0] - h[1] - h[2]), e = n * s.chunks * (k - h[0] - h[1] - h[3]),
                 d = n * s.chunks * (k - h[0]);
    sum += weight * std::max(sm * s.u + e * s.v, (e * s.v + d * s.c) / s.workers);
    all += weight;
  }
  return sum / all;
}

TEST(Estimate, VectorsOfTheSpecification) {
  const LayerCosts layer = costs(4, 3, 1, .125, .25);
  EXPECT_EQ(estimate(2, {}, layer).cost, 9);
  EXPECT_EQ(estimate(2, {.f = 1}, layer).cost, 4.5);
  EXPECT_EQ(estimate(2, {.c = 1}, layer).cost, 4.5);
  EXPECT_EQ(estimate(2, {.s = 1}, layer).cost, 6);
  EXPECT_EQ(estimate(2, {.e = 1}, layer).cost, 7.5);
  EXPECT_EQ(estimate(2, {.f = 2}, layer).cost, 0);
}

TEST(ExpectedCost, VectorsOfTheSpecification) {
  const LayerCosts layer = costs(4, 3, 1, .125, .25);
  const RankModel ranks = make_rank_model(kFour, 2, WeightUpdate::kOdds, 1e-13);
  const struct {
    PoolSlots slots;
    double cost;
  } cases[] = {{{1, 0, 1, 0}, 3.15}, {{0, 1, 1, 0}, 3.665133074}, {{1, 1, 0, 0}, 2.765133074},
               {{0, 0, 2, 1}, 4.05}, {{2, 0, 0, 0}, 2.25},        {{0, 0, 0, 4}, 6},
               {{0, 0, 0, 0}, 9}};
  for (const auto& [slots, cost] : cases) {
    EXPECT_NEAR(expected_cost(ranks, slots, layer).cost, cost, 1e-9);
    EXPECT_NEAR(expected_cost(ranks, slots, layer).cost, brute_cost(ranks, slots, layer), 1e-12);
  }
}

TEST(ExpectedCost, EqualsEnumeration) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE("instance " + std::to_string(i));
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t n = 2 + below(8), k = 1 + below(n - 1);
    std::vector<double> w(n);
    for (double& x : w) x = .1 + below(1000) / 300.;
    std::ranges::sort(w, std::greater());
    const RankModel ranks = make_rank_model(inclusion(w, k), k);
    PoolSlots slots;
    std::uint32_t left = n;
    for (State pool : kPools) left -= slots[pool] = below(left + 1);
    const LayerCosts layer = costs(1 + below(8), 1 + below(6), below(10), below(10) / 10., below(20) / 10.);
    const ExpectedCost expected = expected_cost(ranks, slots, layer);
    EXPECT_NEAR(expected.cost, brute_cost(ranks, slots, layer), 1e-9 * (1 + expected.cost));
    EXPECT_GE(expected.cost, std::max(expected.io, expected.decode) * (1 - 1e-12));
    EXPECT_LE(expected.cost, (expected.io + expected.decode) * (1 + 1e-12));
  }
}

PlanRequest request(double memory, double rho, double grid) {
  return {.memory = memory, .sizes = {2, 1 + rho, 1, rho}, .grid = grid};
}

void expect_gamma(const ZipPlan& plan, PerPool<double> gamma, PoolSlots slots, double cost,
                  double tolerance) {
  for (State pool : kPools) EXPECT_NEAR(plan.gamma[pool], gamma[pool], 1e-12);
  EXPECT_EQ(plan.slots, slots);
  EXPECT_NEAR(plan.expected.cost, cost, tolerance);
}

TEST(ZipPlan, EightExperts) {
  const RankModel ranks = make_rank_model(kEight, 3);
  const PlanRequest six = request(6, .4, .1);
  const ZipPlan fast = make_zip_plan(ranks, costs(4, 6, 1, .1, .05), six);
  expect_gamma(fast, {0, 1, 0, 0}, {0, 4, 0, 0}, 2.062805, 1e-6);
  EXPECT_EQ(fast.configurations, 286u);
  EXPECT_NEAR(*fast.costs_of.f, 3.15, 1e-8);
  EXPECT_NEAR(*fast.costs_of.c, 2.062805, 1e-6);
  expect_gamma(make_zip_plan(ranks, costs(4, 3, 1, .1, .25), six), {1, 0, 0, 0}, {3, 0, 0, 0}, 3.15, 1e-8);
  expect_gamma(make_zip_plan(ranks, costs(4, 1, 1, .1, 1), six), {1, 0, 0, 0}, {3, 0, 0, 0}, 9.9, 1e-8);
}

std::vector<double> power_law(std::uint32_t n, double k) {
  std::vector<double> f(n);
  double low = 0, high = 100;
  for (int i = 0; i < 200; ++i) {
    const double m = (low + high) / 2;
    for (std::uint32_t r = 0; r < n; ++r) f[r] = std::min(.98, m * std::pow(r + 1, -.8));
    (std::accumulate(f.begin(), f.end(), 0.0) < k ? low : high) = m;
  }
  return f;
}

TEST(ZipPlan, SixtyFourExperts) {
  const std::vector<double> f = power_law(64, 6);
  EXPECT_NEAR(f[0], .8490, 5e-5);
  const RankModel ranks = make_rank_model(f, 6);
  const PlanRequest twenty = request(20, .36, .1);
  const ZipPlan fast = make_zip_plan(ranks, costs(4, 6, 1, .09, .05), twenty);
  expect_gamma(fast, {0, .9, .1, 0}, {0, 13, 2, 0}, 10.11277, 5e-6);
  EXPECT_NEAR(*fast.costs_of.f, 12.13110, 5e-6);
  expect_gamma(make_zip_plan(ranks, costs(4, 6, 1, .09, .1), twenty), {0, .9, .1, 0}, {0, 13, 2, 0}, 10.12582,
               5e-6);
  expect_gamma(make_zip_plan(ranks, costs(4, 3, 1, .09, .25), twenty), {.1, .9, 0, 0}, {1, 13, 0, 0},
               10.59118, 5e-6);
  expect_gamma(make_zip_plan(ranks, costs(4, 3, 1, .09, 1), twenty), {1, 0, 0, 0}, {10, 0, 0, 0}, 12.96363,
               5e-6);
  EXPECT_EQ(make_zip_plan(ranks, costs(4, 3, 1, .09, 1), request(20, .36, .05)).configurations, 1771u);
}

TEST(ZipPlan, SharesToSlots) {
  const double p = 8650752;
  EXPECT_EQ(slots_of_shares({.5, .3, .2, 0}, 1e10 / 26, {2 * p, 1.36 * p, p, .36 * p}, 64),
            (PoolSlots{11, 9, 8, 0}));
  EXPECT_EQ(slots_of_shares({.5, .5, 0, 0}, 100, {1, 1, 1, 1}, 64), (PoolSlots{50, 14, 0, 0}));
  EXPECT_EQ(slots_of_shares({1, 0, 0, 0}, 1e300, {1, 1, 1, 1}, 64), (PoolSlots{64, 0, 0, 0}));
}

// Against a plain walk over all shares, for all sets of pools.
TEST(ZipPlan, IsTheFirstOfTheBest) {
  std::mt19937_64 random(21);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE("instance " + std::to_string(i));
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t n = 2 + below(6), k = 1 + below(n - 1), points = 1 + below(6);
    std::vector<double> w(n);
    for (double& x : w) x = .1 + below(1000) / 300.;
    std::ranges::sort(w, std::greater());
    const RankModel ranks = make_rank_model(inclusion(w, k), k);
    const LayerCosts layer = costs(1 + below(5), 1 + below(4), below(10), below(10) / 10., below(20) / 10.);
    PlanRequest r = request(below(16), .1 + below(8) / 10., 1. / points);
    r.pools = {below(3) > 0, below(3) > 0, below(3) > 0, true};
    std::uint64_t configurations = 0;
    double best = std::numeric_limits<double>::infinity();
    PoolSlots best_slots;
    for (std::uint32_t f = points + 1; f-- > 0;) {
      for (std::uint32_t c = points + 1; c-- > 0;) {
        for (std::uint32_t s = points + 1; s-- > 0;) {
          if (f + c + s > points || (f && !r.pools.f) || (c && !r.pools.c) || (s && !r.pools.s)) continue;
          ++configurations;
          const auto share = [&](std::uint32_t of) { return static_cast<double>(of) / points; };
          const PoolSlots slots = slots_of_shares({share(f), share(c), share(s), share(points - f - c - s)},
                                                  r.memory, r.sizes, n);
          const double cost = brute_cost(ranks, slots, layer);
          if (cost < best * (1 - 1e-9)) {
            best = cost;
            best_slots = slots;
          }
        }
      }
    }
    const ZipPlan plan = make_zip_plan(ranks, layer, r);
    EXPECT_EQ(plan.configurations, configurations);
    EXPECT_NEAR(plan.expected.cost, best, 1e-9 * (1 + best));
    EXPECT_EQ(plan.slots, best_slots);
    EXPECT_NEAR(plan.gamma.f + plan.gamma.c + plan.gamma.s + plan.gamma.e, 1, 1e-12);
    for (State pool : kPools) EXPECT_EQ(plan.costs_of[pool].has_value(), r.pools[pool]);
  }
}

TEST(ZipPlan, RequestsThatMakeNoSense) {
  const RankModel ranks = make_rank_model(kEight, 3);
  const auto refused = [&](PlanRequest r) {
    EXPECT_THROW(make_zip_plan(ranks, costs(4, 6, 1, .1, .05), r), Error);
  };
  for (double grid : {0.0, -.1, .3, 1.5, 1e-9, .001, std::nan("")}) refused(request(6, .4, grid));
  for (double memory : {-1.0, std::nan(""), HUGE_VAL}) refused(request(memory, .4, .1));
  refused(request(6, 0, .1));
  PlanRequest none = request(6, .4, .1);
  none.pools = {false, false, false, false};
  refused(none);
}

}  // namespace
}  // namespace sluice::experts
