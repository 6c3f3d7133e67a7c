// The planner: which share of a layer's memory each pool gets, so that the expected cost of a step is least
// under the rank model. ZipMoE (arXiv 2601.21198) Algs. 2-4, App. B; SPEC §1.9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "experts/pools.h"
#include "experts/rank_model.h"
#include "experts/scheduler.h"

namespace sluice::experts {

// What a layer's experts cost to bring in. Times in one unit.
struct LayerCosts {
  unsigned tensors = 3;    // n, of an expert
  ScheduleCosts schedule;  // K, L, u, v, c
};

// Expected times of one layer of one step. They may differ from what adds up: the cost is the mean of the
// larger one.
struct ExpectedCost {
  double cost = 0, io = 0, decode = 0;
};

// The cost of a step of k experts of which h were found in each pool: the disk's time or the workers',
// whichever is longer. Alg. 3. Computing is not in it.
ExpectedCost estimate(std::uint32_t k, const PoolSlots& h, const LayerCosts& costs);

// Its mean over all choices of k experts, if the hottest slots.f ranks are in F, the next slots.c in C, and
// so on: exact, by conditioning independent draws on their sum. REQUIRES: no more slots than ranks.
ExpectedCost expected_cost(const RankModel& ranks, const PoolSlots& slots, const LayerCosts& costs);

// How many experts of these sizes the shares of `memory` hold, the pools filled in their order, of `experts`
// in all.
PoolSlots slots_of_shares(const PerPool<double>& gamma, double memory, const PerPool<double>& sizes,
                          std::uint32_t experts);

struct PlanRequest {
  PerPool<bool> pools = {true, true, true, true};  // those that may have a share
  double memory = 0;                               // of this layer
  PerPool<double> sizes;  // of one expert in each state, in the unit of `memory`; > 0
  double grid = 0.05;     // step of the shares; 1 / grid is an integer
};

struct ZipPlan {
  PerPool<double> gamma;  // shares of the memory, Σ = 1
  PoolSlots slots;
  ExpectedCost expected;
  std::uint64_t configurations = 0;         // shares tried
  PerPool<std::optional<double>> costs_of;  // the cost with that pool alone, of those allowed
};

// Tries every point of the grid; of equals the one with the larger F, then C, then S. Error(kInvalid) for a
// request without pools, with a grid, memory or size that makes no sense, or with more than
// `kMostConfigurations`.
constexpr std::uint64_t kMostConfigurations = 2'000'000;
ZipPlan make_zip_plan(const RankModel& ranks, const LayerCosts& costs, const PlanRequest& request);

}  // namespace sluice::experts
