// What a real run would cost on a modelled machine: the equations of SPEC §4.1 (docs/slicemoe.md, "The
// modelled machine") applied to everything that the engine reads, computes and keeps, event by event.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "lab/machine/expert_phase.h"
#include "lab/machine/machine.h"
#include "lab/machine/sliced_model.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::lab {

// Totals of all steps of one phase since observation began. traffic.flash and energy are set only in the
// results of prefill() and decode().
struct RunPhase {
  std::uint64_t steps = 0, tokens = 0;
  // flash: expert bytes that the engine asked of the disk, in whole blocks, including prefetches.
  Traffic traffic;
  Energy energy;
  double rest_s = 0;                 // everything except routed experts
  double compute_s = 0, wait_s = 0;  // for routed experts: the unit computes, or waits for Flash
  double seconds() const { return rest_s + compute_s + wait_s; }
  double per_token(double sum) const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
};

// Observes an engine (Engine::observe). It counts:
//  - experts: the bytes that they are computed from: the slices of their view; for models without slices the
//    words, or the planes where experts are kept packed. 2 operations for each weight and token.
//  - the rest: dense weights as the engine keeps them, once a step; keys and values in the type of the cache.
//  - time: an expert's misses are read on demand, in the order of requests; for models without slices by
//    ascending id, whatever has been read ahead.
// It leaves out dense weights that are read when needed (rows of an embedding), and the reads of loading.
// Thread-compatible.
class RunOnMachine final : public engine::RoutingObserver {
 public:
  // False for models without experts and for models with an encoder.
  static bool models(const model::ModelConfig& config);
  // REQUIRES: models() is true for the engine's model. Both arguments must outlive this.
  RunOnMachine(const engine::Engine& engine, const Machine& machine);

  void on_step(const engine::Step& step) override;
  void on_resume(const engine::Step& step) override { turn_to(step); }
  void on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) override;

  const Machine& machine() const { return machine_; }
  RunPhase prefill() const;
  RunPhase decode() const;

 private:
  void turn_to(const engine::Step& step);
  // The bytes of an expert that an event reads, and those that it is computed from.
  ExpertWork work_of(const experts::Admission& admission) const;
  RunPhase finished(RunPhase phase, const engine::ExpertStatistics& now,
                    const engine::ExpertStatistics& before) const;

  const engine::Engine& engine_;
  const Machine& machine_;
  const SlicedModel model_;
  const RestWidths widths_;
  const bool sliced_, packed_;
  const engine::Statistics before_;  // when observation began
  RunPhase prefill_, decode_;
  RunPhase* now_ = nullptr;  // the phase of the running step
  ExpertClock clock_;
  std::vector<std::uint32_t> tokens_;                  // by expert of the layer
  std::vector<const experts::Admission*> admissions_;  // by expert of the layer
  std::vector<experts::ExpertId> ranked_;
  std::vector<ExpertWork> work_;
  std::vector<SlicedModel::Stretch> stretches_;
};

}  // namespace sluice::lab
