#include "experts/plan/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "base/error.h"

namespace sluice::experts {
namespace {

// As poisson_binomial, for at most `most` successes: enough for the sums over hits.
std::vector<double> hits_law(std::span<const double> q, std::size_t most) {
  std::vector<double> phi(std::min(most, q.size()) + 1);
  phi[0] = 1;
  for (std::size_t m = 0; m < q.size(); ++m) {
    for (std::size_t h = std::min(m + 1, phi.size() - 1); h > 0; --h)
      phi[h] = phi[h] * (1 - q[m]) + phi[h - 1] * q[m];
    phi[0] *= 1 - q[m];
  }
  return phi;
}

[[noreturn]] void refuse(const char* field, const char* expected, double found) {
  throw Error(ErrorKind::kInvalid, "the plan cannot be made")
      .in(field)
      .expected(expected)
      .found(std::to_string(found));
}

// 1 / grid.
std::uint64_t grid_points(double grid) {
  const double points = grid > 0 && grid <= 1 ? std::round(1 / grid) : 0;
  if (!(points >= 1 && points <= 1e6 && std::abs(1 / grid - points) <= 1e-9 * points)) {
    refuse("grid", "a number in (0, 1] of which 1 is a multiple", grid);
  }
  return static_cast<std::uint64_t>(points);
}

// In how many ways `points` can be shared among `pools`.
double compositions(double points, std::size_t pools) {
  double count = 1;
  for (std::size_t i = 1; i < pools; ++i)
    count = count * (points + static_cast<double>(i)) / static_cast<double>(i);
  return count;
}

}  // namespace

ExpectedCost estimate(std::uint32_t k, const PoolSlots& h, const LayerCosts& costs) {
  const ScheduleCosts& s = costs.schedule;
  const double n = costs.tensors, chunks = n * s.chunks;
  const double sm = n * (k - h.f - h.c - h.s), read = chunks * (k - h.f - h.c - h.e),
               decoded = chunks * (k - h.f);
  ExpectedCost cost{.io = sm * s.u + read * s.v, .decode = (read * s.v + decoded * s.c) / s.workers};
  cost.cost = std::max(cost.io, cost.decode);
  return cost;
}

ExpectedCost expected_cost(const RankModel& ranks, const PoolSlots& slots, const LayerCosts& costs) {
  const std::uint32_t k = ranks.k;
  std::span<const double> left = ranks.q;
  std::array<std::vector<double>, 5> phi;  // by pool, and for the ranks outside all pools
  for (std::size_t p = 0; p < kPools.size(); ++p) {
    SLUICE_CHECK(slots[kPools[p]] <= left.size());
    phi[p] = hits_law(left.first(slots[kPools[p]]), k);
    left = left.subspan(slots[kPools[p]]);
  }
  phi[4] = hits_law(left, k);

  ExpectedCost mean;
  PoolSlots h;
  for (h.f = 0; h.f < phi[0].size(); ++h.f) {
    for (h.c = 0; h.c < phi[1].size() && h.f + h.c <= k; ++h.c) {
      const double fc = phi[0][h.f] * phi[1][h.c];
      if (fc == 0) continue;
      for (h.s = 0; h.s < phi[2].size() && h.f + h.c + h.s <= k; ++h.s) {
        for (h.e = 0; h.e < phi[3].size() && h.f + h.c + h.s + h.e <= k; ++h.e) {
          const std::uint32_t missed = k - h.f - h.c - h.s - h.e;
          if (missed >= phi[4].size()) continue;
          const double probability = fc * phi[2][h.s] * phi[3][h.e] * phi[4][missed];
          const ExpectedCost cost = estimate(k, h, costs);
          mean.cost += cost.cost * probability;
          mean.io += cost.io * probability;
          mean.decode += cost.decode * probability;
        }
      }
    }
  }
  for (double* part : {&mean.cost, &mean.io, &mean.decode}) *part /= ranks.phi[k];
  return mean;
}

PoolSlots slots_of_shares(const PerPool<double>& gamma, double memory, const PerPool<double>& sizes,
                          std::uint32_t experts) {
  PoolSlots slots;
  std::uint32_t left = experts;
  for (State pool : kPools) {
    const double fit = std::floor(gamma[pool] * memory / sizes[pool] + 1e-9);
    slots[pool] = fit < left ? static_cast<std::uint32_t>(fit) : left;
    left -= slots[pool];
  }
  return slots;
}

ZipPlan make_zip_plan(const RankModel& ranks, const LayerCosts& costs, const PlanRequest& request) {
  const std::uint64_t points = grid_points(request.grid);
  std::vector<State> pools;
  for (State pool : kPools) {
    if (request.pools[pool]) pools.push_back(pool);
    if (!(request.sizes[pool] > 0)) refuse("sizes", "numbers > 0", request.sizes[pool]);
  }
  if (pools.empty()) refuse("pools", "one pool or more", 0);
  if (!(request.memory >= 0) || !std::isfinite(request.memory))
    refuse("memory", "a number >= 0", request.memory);
  if (compositions(static_cast<double>(points), pools.size()) > kMostConfigurations) {
    refuse("grid", "a grid of at most 2000000 points", request.grid);
  }

  const auto experts = static_cast<std::uint32_t>(ranks.q.size());
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, ExpectedCost> known;
  const auto cost_of = [&](const PoolSlots& slots) {
    const auto [at, inserted] = known.try_emplace({slots.f, slots.c, slots.s, slots.e});
    if (inserted) at->second = expected_cost(ranks, slots, costs);
    return at->second;
  };
  ZipPlan plan;
  plan.expected.cost = std::numeric_limits<double>::infinity();
  PerPool<double> gamma;
  const auto visit = [&](const auto& self, std::size_t depth, std::uint64_t left) -> void {
    if (depth + 1 == pools.size()) {
      gamma[pools[depth]] = static_cast<double>(left) / static_cast<double>(points);
      ++plan.configurations;
      const PoolSlots slots = slots_of_shares(gamma, request.memory, request.sizes, experts);
      const ExpectedCost expected = cost_of(slots);
      if (expected.cost < plan.expected.cost * (1 - 1e-12)) {
        plan.expected = expected;
        plan.gamma = gamma;
        plan.slots = slots;
      }
      return;
    }
    for (std::uint64_t share = left + 1; share-- > 0;) {
      gamma[pools[depth]] = static_cast<double>(share) / static_cast<double>(points);
      self(self, depth + 1, left - share);
    }
  };
  visit(visit, 0, points);
  for (State pool : pools) {
    PerPool<double> alone;
    alone[pool] = 1;
    plan.costs_of[pool] = cost_of(slots_of_shares(alone, request.memory, request.sizes, experts)).cost;
  }
  return plan;
}

}  // namespace sluice::experts
