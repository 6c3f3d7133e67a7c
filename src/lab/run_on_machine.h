// What a real run would take on a modelled machine: the equations of SPEC §4.1 (docs/slicemoe.md, "The
// modelled machine"), applied to what the engine reads, computes and keeps, event by event.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/routing_observer.h"
#include "experts/precision.h"
#include "lab/expert_phase.h"
#include "lab/machine.h"
#include "lab/sliced_model.h"

namespace sluice::lab {

// Of all steps of one phase, since the run was watched. traffic.flash and energy are set only in what
// prefill() and decode() return.
struct RunPhase {
  std::uint64_t steps = 0, tokens = 0;
  // flash: bytes that the engine asked of the disk for experts, whole blocks, prefetches too.
  Traffic traffic;
  Energy energy;
  double rest_s = 0;                 // all that is no routed expert
  double compute_s = 0, wait_s = 0;  // routed experts: the unit computes, or waits for Flash
  double seconds() const { return rest_s + compute_s + wait_s; }
  double per_token(double sum) const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
};

// Watches an engine (Engine::observe). What it counts:
//  - experts: bytes that they are computed from: slices of their view; of models without slices the words, or
//    the planes where experts are kept packed. 2 operations for each weight and token.
//  - the rest: dense weights as the engine keeps them, once a step; keys and values in the type of the cache.
//  - time: an expert's misses are read on demand, in the order of requests; of models without slices by
//    ascending id, whatever has been read ahead.
// Dense weights that are read as they are needed (rows of an embedding) and what loading reads is left out.
// Thread-compatible.
class RunOnMachine final : public engine::RoutingObserver {
 public:
  // False for models without experts, and with an encoder.
  static bool models(const model::ModelConfig& config);
  // REQUIRES: models() the engine's. Both must outlive it.
  RunOnMachine(const engine::Engine& engine, const Machine& machine);

  void on_step(const engine::Step& step) override;
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override;
  void on_decisions(std::uint32_t sparse_layer, const experts::EventOutcome& outcome) override;

  const Machine& machine() const { return machine_; }
  RunPhase prefill() const;
  RunPhase decode() const;

 private:
  // What of an expert is read for an event, and what it is computed from. In bytes.
  ExpertWork work_of(const experts::Admission& admission) const;
  RunPhase finished(RunPhase phase, const engine::ExpertStatistics& now,
                    const engine::ExpertStatistics& before) const;

  const engine::Engine& engine_;
  const Machine& machine_;
  const SlicedModel model_;
  const RestWidths widths_;
  const bool sliced_, packed_;
  const engine::Statistics before_;  // when it began to watch
  RunPhase prefill_, decode_;
  RunPhase* now_ = nullptr;  // of the running step
  ExpertClock clock_;
  experts::SliceDemands demands_;
  std::vector<std::uint32_t> tokens_;                  // by expert of the layer
  std::vector<const experts::Admission*> admissions_;  // likewise
  std::vector<experts::ExpertId> ranked_;
  std::vector<ExpertWork> work_;
  std::vector<SlicedModel::Stretch> stretches_;
};

}  // namespace sluice::lab
