// The routing of a run, kept in memory in the form that replays walk.
#pragma once

#include <string>
#include <string_view>

#include "engine/watch/routing_observer.h"
#include "lab/replay/routed_steps.h"
#include "model/config.h"

namespace sluice::lab {

// Observes an engine (Engine::observe) from before its first step. Keeps every logit: 4 bytes for each token,
// sparse layer and expert. Keeps a failed step as far as it came. Thread-compatible.
class RoutingRecorder final : public engine::RoutingObserver {
 public:
  // `predictor`: whose predictions are kept, too (forward/predictor.h), of the steps and layers that it
  // predicts; empty: nobody's.
  explicit RoutingRecorder(const model::ModelConfig& config, std::string_view predictor = {});
  void on_step(const engine::Step& step) override;
  void on_resume(const engine::Step& step) override;  // Error(kUnsupported): steps are whole
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override;
  bool wants_ahead() const override { return steps_.predicted; }
  void on_ahead(std::string_view predictor, const experts::ScoresView& next) override;
  const RoutedSteps& steps() const { return steps_; }

 private:
  RoutedSteps steps_;
  const std::string predictor_;
};

}  // namespace sluice::lab
