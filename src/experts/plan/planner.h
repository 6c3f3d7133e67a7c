// The planner: which share of a layer's memory each pool gets, so that a step costs least in expectation
// under the rank model. ZipMoE (arXiv 2601.21198) Algs. 2-4, App. B; SPEC §1.9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "experts/core/pools.h"
#include "experts/plan/rank_model.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// The costs of bringing in a layer's experts. Times in one unit.
struct LayerCosts {
  unsigned tensors = 3;    // n, tensors of an expert
  ScheduleCosts schedule;  // K, L, u, v, c
};

// Expected times of one layer of one step. Their sum may differ from the cost: the cost is the mean of the
// larger time.
struct ExpectedCost {
  double cost = 0, io = 0, decode = 0;
};

// The cost of a step of k experts when h experts were found in each pool: the disk's time or the workers'
// time, whichever is longer. Alg. 3. Computing is not included.
ExpectedCost estimate(std::uint32_t k, const PoolSlots& h, const LayerCosts& costs);

// The mean of estimate() over all choices of k experts, with the hottest slots.f ranks in F, the next slots.c
// in C, and so on: exact, by conditioning independent draws on their sum. REQUIRES: no more slots than ranks.
ExpectedCost expected_cost(const RankModel& ranks, const PoolSlots& slots, const LayerCosts& costs);

// How many experts of these sizes fit in the shares of `memory`, the pools filled in their order, for
// `experts` in all.
PoolSlots slots_of_shares(const PerPool<double>& gamma, double memory, const PerPool<double>& sizes,
                          std::uint32_t experts);

struct PlanRequest {
  PerPool<bool> pools = {true, true, true, true};  // pools that may have a share
  double memory = 0;                               // for this layer
  // Size of one expert in each state, in the unit of `memory`; > 0.
  PerPool<double> sizes;
  double grid = 0.05;  // step of the shares; 1 / grid is an integer
};

struct ZipPlan {
  PerPool<double> gamma;  // shares of the memory, Σ = 1
  PoolSlots slots;
  ExpectedCost expected;
  std::uint64_t configurations = 0;         // shares tried
  PerPool<std::optional<double>> costs_of;  // the cost with that pool alone, for each allowed pool
};

// Tries every point of the grid; among equal costs prefers the larger F, then C, then S. Error(kInvalid) for
// a request without pools, with a grid, memory or size that makes no sense, or with more than
// `kMostConfigurations`.
constexpr std::uint64_t kMostConfigurations = 2'000'000;
ZipPlan make_zip_plan(const RankModel& ranks, const LayerCosts& costs, const PlanRequest& request);

}  // namespace sluice::experts
