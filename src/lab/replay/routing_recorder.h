// The routing of a run, kept in memory in the form that replays walk.
#pragma once

#include "engine/watch/routing_observer.h"
#include "lab/replay/routed_steps.h"
#include "model/config.h"

namespace sluice::lab {

// Observes an engine (Engine::observe) from before its first step. Keeps every logit: 4 bytes for each token,
// sparse layer and expert. Keeps a failed step as far as it came. Thread-compatible.
class RoutingRecorder final : public engine::RoutingObserver {
 public:
  explicit RoutingRecorder(const model::ModelConfig& config);
  void on_step(const engine::Step& step) override;
  void on_resume(const engine::Step& step) override;  // Error(kUnsupported): steps are whole
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override;
  const RoutedSteps& steps() const { return steps_; }

 private:
  RoutedSteps steps_;
};

}  // namespace sluice::lab
