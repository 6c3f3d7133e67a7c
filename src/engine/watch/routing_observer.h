// Lets other code watch a run: the routing of every sparse layer of every step, and the cache's decisions
// about it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/session/step.h"
#include "experts/cache/residency.h"
#include "experts/routing/router.h"

namespace sluice::engine {

// Called on the thread that drives the engine, in this order: on_step; then for each sparse layer, ascending,
// on_routing and on_decisions. Arguments are valid only during the call. An observer must not call the
// engine; an Error that it throws ends the step like any other error.
class RoutingObserver {
 public:
  virtual ~RoutingObserver() = default;
  // A step begins. Its sequences do not hold the step's tokens yet.
  virtual void on_step(const Step& /*step*/) {}
  // The router has chosen for all tokens of the step.
  virtual void on_routing(const experts::ScoresView& /*scores*/, const experts::Routing& /*routing*/) {}
  // The layer's event has been decided.
  virtual void on_decisions(std::uint32_t /*sparse_layer*/, const experts::EventOutcome& /*outcome*/) {}
};

// Several observers as one, called in the order in which they were added.
class ObserverList final : public RoutingObserver {
 public:
  void add(RoutingObserver* observer) { observers_.push_back(observer); }  // must outlive this
  bool empty() const { return observers_.empty(); }
  void on_step(const Step& step) override {
    for (RoutingObserver* observer : observers_) observer->on_step(step);
  }
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override {
    for (RoutingObserver* observer : observers_) observer->on_routing(scores, routing);
  }
  void on_decisions(std::uint32_t sparse_layer, const experts::EventOutcome& outcome) override {
    for (RoutingObserver* observer : observers_) observer->on_decisions(sparse_layer, outcome);
  }

 private:
  std::vector<RoutingObserver*> observers_;
};

}  // namespace sluice::engine
