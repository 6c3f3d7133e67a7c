// Lets other code watch a run: the routing of every sparse layer of every step, and the cache's decisions
// about it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/session/step.h"
#include "experts/routing/router.h"

namespace sluice::experts {
struct LayerDecision;  // experts/layer_decider.h
}

namespace sluice::engine {

// Called on the thread that drives the engine, in this order: on_step; then for each sparse layer, ascending,
// on_inputs, on_routing and on_decisions; then, where there is a next sparse layer, on_ahead for it. Between
// the layers of a suspended step another step may come from its on_step to its last layer; on_resume then
// says whose layers follow. Arguments are valid only during the call. An observer must not call the engine;
// an Error that it throws ends the step like any other error.
class RoutingObserver {
 public:
  virtual ~RoutingObserver() = default;
  // A step begins. Its sequences do not hold the step's tokens yet.
  virtual void on_step(const Step& /*step*/) {}
  // A step that was suspended goes on.
  virtual void on_resume(const Step& /*step*/) {}
  // The layer's router is about to score `inputs`: (T, hidden), the normed residual stream.
  virtual void on_inputs(std::uint32_t /*sparse_layer*/, std::span<const float> /*inputs*/) {}
  // The router has chosen for all tokens of the step.
  virtual void on_routing(const experts::ScoresView& /*scores*/, const experts::Routing& /*routing*/) {}
  // The layer's event has been decided, and is being carried out.
  virtual void on_decisions(std::uint32_t /*sparse_layer*/, const experts::LayerDecision& /*decision*/) {}
  // Whether on_ahead is to be called. Predictions are then made for every layer, whatever is read ahead.
  virtual bool wants_ahead() const { return false; }
  // A prediction of the next layer's scores, by each name of forward/predictor.h in turn; by kPartialState
  // only where a prefetch asks for it.
  virtual void on_ahead(std::string_view /*predictor*/, const experts::ScoresView& /*next*/) {}
};

// Several observers as one, called in the order in which they were added.
class ObserverList final : public RoutingObserver {
 public:
  void add(RoutingObserver* observer);  // must outlive this
  bool empty() const;
  void on_step(const Step& step) override;
  void on_resume(const Step& step) override;
  void on_inputs(std::uint32_t sparse_layer, std::span<const float> inputs) override;
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override;
  void on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) override;
  bool wants_ahead() const override;
  void on_ahead(std::string_view predictor, const experts::ScoresView& next) override;

 private:
  std::vector<RoutingObserver*> observers_;
};

}  // namespace sluice::engine
