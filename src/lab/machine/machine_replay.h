// Replays recorded routing through SliceMoE's decisions on a modelled machine: the engine's own LayerDecider
// decides, and the machine clocks it. Time and energy follow the equations of SPEC §4.1. SliceMoE; SPEC §4;
// docs/slicemoe.md.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/named_policy.h"
#include "experts/routing/miss_constraint.h"
#include "experts/routing/precision.h"
#include "experts/routing/router_config.h"
#include "experts/routing/routing_changes.h"
#include "lab/machine/machine.h"
#include "lab/machine/sliced_model.h"
#include "lab/replay/routed_steps.h"

namespace sluice::lab {

struct MachineReplaySettings {
  experts::ExpertBytes bytes;  // for every expert: slice_bytes()
  Bytes memory = 0;            // for the one cache of all layers
  experts::Named<experts::CachePolicy> cache = "slice-lru";
  experts::Named<experts::RouterPolicy> router = "exact";
  experts::CacheAwareRules cache_aware = {};
  experts::SmoeRules smoe = {};
  experts::PrecisionRule precision = {};
  experts::ConstraintConfig constraint = {};  // the replay sets the views
  experts::SlicesConfig slices = {};          // for slice-lru
  std::uint64_t seed = 0;
};

// Totals of all steps of one phase.
struct MachinePhase {
  std::uint64_t steps = 0, tokens = 0;
  experts::MissAccount account;          // over all its steps, exempt steps included
  std::uint64_t requests = 0, hits = 0;  // experts of events; a hit has all parts that were asked for
  Traffic traffic;
  Energy energy;
  double seconds = 0;                // = rest + compute + wait
  double rest_s = 0;                 // everything except routed experts
  double compute_s = 0, wait_s = 0;  // for routed experts: the unit computes, or waits for Flash

  double per_token(double sum) const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
};

// One decode step.
struct MachineStepFigures {
  double joules = 0, seconds = 0;
  double missed = 0, requested = 0;  // bytes, as in MissAccount
};

struct MachineReplayResult {
  MachinePhase prefill, decode;
  std::uint64_t prompts = 0;
  experts::MissAccount accounted;  // steps that the constraint counts: decode steps except exempt ones
  std::uint64_t replaced = 0, violations = 0;
  double lambda = 0;                // at the end
  experts::RoutingChanges changes;  // in decode steps
  // Tokens of layers whose recorded experts are not the top k of the logits.
  std::uint64_t recorded_differs = 0;
  // In decode steps, by number of critical experts: tokens of layers.
  std::vector<std::uint64_t> critical;
  std::vector<MachineStepFigures> steps;  // decode steps, in order
  std::uint64_t decision_hash = 0;        // as Residency::decision_hash
};

// Called with every event's decisions, in order.
using DecisionObserver =
    std::function<void(std::uint64_t event, std::uint32_t layer, const experts::EventOutcome& outcome)>;

// One cache for all layers; it starts empty and is kept across sequences. Prompts are computed at high
// precision (SPEC §4.3) and are neither constrained nor accounted; behind each prompt the constraint's exempt
// steps begin again. Without logits the router `exact` uses the recorded experts unchanged. `observer` and
// `stop` may be empty. Error(kUsage) for an invalid combination (experts/combination.h), for more critical
// experts than a token has, or more kept experts than a layer has, and for a router that needs logits that
// are missing; Error(kInvalid) for steps of another shape than the model's; Error(kBudget) for memory in
// which no expert's MSB fits; Error(kInterrupted).
MachineReplayResult replay_on_machine(const RoutedSteps& steps, const SlicedModel& model,
                                      const Machine& machine, const MachineReplaySettings& settings,
                                      const DecisionObserver& observer = {},
                                      const std::function<bool()>& stop = {});

}  // namespace sluice::lab
