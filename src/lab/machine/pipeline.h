// Timed replay: ZipMoE's whole pipeline over recorded routing, with measured costs and a virtual clock.
// Residency, then tasks, then the scheduler's order, then the makespan of the layer. ZipMoE (arXiv
// 2601.21198); SPEC §1.3-1.10; docs/replay.md, "Timed replay".
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/plan/profile.h"
#include "experts/cache/zip_pools.h"
#include "experts/core/ids.h"
#include "experts/core/pools.h"
#include "experts/presets.h"
#include "experts/schedule/expert_costs.h"
#include "lab/replay/replay.h"

namespace sluice::lab {

// Seconds and bytes, the same for every expert.
struct PipelineCosts {
  // chunks 0: experts are stored whole, and u is the time to read a whole tensor. c: time in which one worker
  // decodes a chunk and merges it.
  experts::ScheduleCosts fetch;
  unsigned tensors = 3;        // n, tensors of an expert
  experts::ComputeTime run;    // p by number of tokens
  double rest = 0;             // time of a step for everything except routed experts
  experts::ExpertBytes bytes;  // both for reading and in memory

  double whole_read() const;  // time to read one expert in full, without decoding
};

// Turns a measured profile into costs for the replay: every cost is its median.
PipelineCosts pipeline_costs(const engine::Profile& profile);

struct PipelineSettings {
  const experts::Preset* preset = nullptr;  // never null
  Scope scope = Scope::kGlobal;
  Bytes memory = 0;                              // for the resident experts of all layers
  std::optional<experts::PoolSlots> pools = {};  // for each layer; presets with pools require them
  experts::PoolRules rules = {};
  std::uint64_t seed = 0;
  // Times every step as a decode step, for traces without phases.
  bool all_decode = false;
};

// Totals of all steps of one phase. time = rest + compute + disk + decode.
struct PipelineTimes {
  std::uint64_t steps = 0, tokens = 0;
  std::uint64_t accesses = 0, hits = 0;
  std::array<std::uint64_t, 5> found{};  // accesses by the state in which the expert was found: F, C, S, E, M
  Bytes bytes = 0;                       // bytes read
  double time = 0, rest = 0;
  double compute = 0;  // routed experts, including merging
  double disk = 0;     // waiting that would remain if decoding took no time
  double decode = 0;   // the rest of the waiting
  double least = 0;    // a lower bound for every schedule: the bounds of all layers, and the rest
};

struct PipelineResult {
  PipelineTimes prefill, decode;
  std::uint64_t prompts = 0;     // stretches of prefill steps
  std::uint64_t fallbacks = 0;   // layers whose search was abandoned for its cost (SPEC §1.5)
  double first_token_s() const;  // TTFT, mean over the prompts; 0 without prompts
  double token_s() const;        // TPOT, mean time of a decode step
  double tokens_per_second() const;
  double bytes_per_token() const;  // in decode steps
};

// Error(kUsage) for a preset of slices, and for pools that are missing or not asked for; Error(kBudget) for
// pools that hold more than the memory.
PipelineResult run_pipeline(const Requests& requests, std::uint32_t layers, std::uint32_t experts,
                            const PipelineCosts& costs, const PipelineSettings& settings,
                            const std::function<bool()>& stop = {});

}  // namespace sluice::lab
