#include "engine/watch/routing_observer.h"

#include <algorithm>

namespace sluice::engine {

void ObserverList::add(RoutingObserver* observer) { observers_.push_back(observer); }

bool ObserverList::empty() const { return observers_.empty(); }

void ObserverList::on_step(const Step& step) {
  for (RoutingObserver* observer : observers_) observer->on_step(step);
}

void ObserverList::on_resume(const Step& step) {
  for (RoutingObserver* observer : observers_) observer->on_resume(step);
}

void ObserverList::on_inputs(std::uint32_t sparse_layer, std::span<const float> inputs) {
  for (RoutingObserver* observer : observers_) observer->on_inputs(sparse_layer, inputs);
}

void ObserverList::on_routing(const experts::ScoresView& scores, const experts::Routing& routing) {
  for (RoutingObserver* observer : observers_) observer->on_routing(scores, routing);
}

void ObserverList::on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) {
  for (RoutingObserver* observer : observers_) observer->on_decisions(sparse_layer, decision);
}

bool ObserverList::wants_ahead() const {
  return std::ranges::any_of(observers_,
                             [](const RoutingObserver* observer) { return observer->wants_ahead(); });
}

void ObserverList::on_ahead(std::string_view predictor, const experts::ScoresView& next) {
  for (RoutingObserver* observer : observers_)
    if (observer->wants_ahead()) observer->on_ahead(predictor, next);
}

}  // namespace sluice::engine
