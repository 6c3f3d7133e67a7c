// Decides before a run in which states the experts of a layer stay: the planner of src/experts with this
// machine's costs, this model's sizes and the budget's bytes. ZipMoE (arXiv 2601.21198) §5; SPEC §1.8, §1.9.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/profile.h"
#include "experts/named_policy.h"
#include "experts/plan/planner.h"
#include "experts/presets.h"

namespace sluice::engine {

// How the pools divide the memory for experts.
enum class PoolShares {
  // Least expected cost of a layer (z-C+P, zipmoe); all of it for F, if a step is expected to be shorter so.
  kPlanned,
  kEqual,  // equal memory for every pool (z-C)
};

// As a preset with pools has it.
PoolShares shares_of(const experts::Preset& preset);

struct PoolPlanRequest {
  PoolShares shares = PoolShares::kPlanned;
  Bytes memory = 0;             // for resident experts of all layers
  std::size_t sequences = 1;    // sequences that are decoded together
  std::vector<double> ranks{};  // f of SPEC §1.8 for one sequence; empty: assumed_ranks()
  double grid = 0.05;
  experts::Named<experts::PrefetchPolicy> prefetch{};  // reads ahead; empty: nothing does
};

// One choice of slots, the same for every layer, and its cost.
struct PoolChoice {
  experts::PoolSlots slots;
  experts::ExpectedCost expected;  // the cost of one layer of one decode step, seconds
  double step_s = 0;               // one decode step: all layers, computing, and the rest of the model
  double tok_s = 0;                // tokens a second over all sequences
  std::string limit;               // "disk" "decode" "compute": the longest wait of a step
  double disk_bytes = 0;           // that a step needs from the disk, expected
  // A step is expected to read this many bytes ahead in vain; none: nobody knows how well the policy guesses.
  // step_s counts the time that demand waits behind such reads, and not the time that read-ahead saves.
  std::optional<double> wasted_bytes;
};

struct PoolPlan {
  PoolChoice chosen, f_only, equal_shares;
  experts::PerPool<double> gamma;    // shares of the memory
  std::uint64_t configurations = 0;  // tried
  std::vector<double> ranks;         // as used: for the whole batch
  std::uint32_t distinct = 0;        // experts of a layer that a step uses: k, or k' for a batch
  bool ranks_assumed = false;        // no routing was recorded
  Bytes layer_memory = 0;
  double compute_s = 0;  // for one layer of one step
};

// f_r = min(.98, m·r^-.8) with Σ f = k: roughly what recorded routing of fine-grained models looks like.
std::vector<double> assumed_ranks(std::uint32_t experts, std::uint32_t k);
// Frequencies of `sequences` independent sequences together: 1 - (1 - f)^B.
std::vector<double> ranks_of_batch(std::span<const double> ranks, std::size_t sequences);

// Only F if the experts are not stored split. Error(kInvalid) for ranks of another number of experts.
PoolPlan plan_pools(const Profile& profile, const PoolPlanRequest& request);

// {gamma, slots, cost_layer_s, tok_s, limit, alternatives …}: the members of `sluice plan` in JSON about
// pools.
Json to_json(const PoolPlan& plan);

}  // namespace sluice::engine
