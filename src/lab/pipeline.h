// Timed replay: ZipMoE's whole pipeline over recorded routing, costs that were measured, and a virtual clock.
// Residency, then tasks, then the scheduler's order, then the makespan of the layer. ZipMoE (arXiv
// 2601.21198); SPEC §1.3-1.10; docs/replay.md, "Timed replay".
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/profile.h"
#include "experts/ids.h"
#include "experts/pools.h"
#include "experts/scheduler.h"
#include "experts/zip_pools.h"
#include "lab/replay.h"

namespace sluice::lab {

// Seconds and bytes, the same for every expert.
struct PipelineCosts {
  // chunks 0: experts are stored whole, and u is the read of a whole tensor. c: decoding a chunk and merging
  // it, which one worker does.
  experts::ScheduleCosts fetch;
  unsigned tensors = 3;                               // n, of an expert
  std::vector<std::pair<std::uint32_t, double>> run;  // p by number of tokens, ascending
  double rest = 0;                                    // of a step: all that is not routed experts
  experts::ExpertBytes bytes;                         // read, and held

  double run_of(
      std::uint32_t tokens) const;  // p; straight lines between the tokens that are known, and beyond
  double whole_read() const;        // of one expert in full, with nothing decoded
};

// What was measured, for the replay: every cost is its median.
PipelineCosts pipeline_costs(const engine::Profile& profile);

struct PipelineSettings {
  std::string preset;  // experts::presets()
  Scope scope = Scope::kGlobal;
  Bytes memory = 0;                              // for the resident experts of all layers
  std::optional<experts::PoolSlots> pools = {};  // of each layer; presets with pools must have them
  experts::PoolRules rules = {};
  std::uint64_t seed = 0;
  bool all_decode = false;  // every step is timed as a decode step: traces that do not know phases
};

// Of all steps of one phase. time = rest + compute + disk + decode.
struct PipelineTimes {
  std::uint64_t steps = 0, tokens = 0;
  std::uint64_t accesses = 0, hits = 0;
  std::array<std::uint64_t, 5> found{};  // accesses by the state that the expert was in: F, C, S, E, M
  Bytes bytes = 0;                       // read
  double time = 0, rest = 0;
  double compute = 0;  // routed experts, and merging
  double disk = 0;     // waiting that would be there if decoding took no time
  double decode = 0;   // waiting that would not
  double least = 0;    // what no schedule could beat: the lower bounds of every layer, and the rest
};

struct PipelineResult {
  PipelineTimes prefill, decode;
  std::uint64_t prompts = 0;     // stretches of prefill steps
  std::uint64_t fallbacks = 0;   // layers whose search was given up for its cost (SPEC §1.5)
  double first_token_s() const;  // TTFT, mean over the prompts; 0 without any
  double token_s() const;        // TPOT, mean time of a decode step
  double tokens_per_second() const;
  double bytes_per_token() const;  // of decode steps
};

// Error(kUsage) for an unknown preset, or pools that are missing, or not asked for; Error(kBudget) for pools
// that hold more than the memory.
PipelineResult run_pipeline(const Requests& requests, std::uint32_t layers, std::uint32_t experts,
                            const PipelineCosts& costs, const PipelineSettings& settings,
                            const std::function<bool()>& stop = {});

}  // namespace sluice::lab
