#include "lab/replay/decided_events.h"

#include <utility>

#include "lab/replay/routed_steps.h"

namespace sluice::lab {

DecidedEvents::DecidedEvents(const trace::TraceHeader& header, experts::LayerPolicies policies)
    : experts_(header.experts), decider_(std::move(policies), {header.layers, header.top_k}) {}

const experts::LayerDecision& DecidedEvents::decide(const trace::TraceEvent& event) {
  trace::describe_spans(event, spans_);
  if (!step_ || *step_ != event.step) {
    finish();
    decider_.begin_step(spans_);
    step_ = event.step;
  }
  const RecordedEvent recorded{event.choices, event.begin, event.logits};
  const experts::ScoresView scores = recorded.seen(event.layer, experts_, spans_, scores_);
  if (!decider_.policies().router) {
    decider_.follow(scores, event.choices, event.begin);
  } else if (const experts::Routing& routing = decider_.route(scores);
             event.phase == trace::TracePhase::kPrefill) {
    recorded_differs_ += recorded.differing(routing);
  }
  return decider_.decide();
}

void DecidedEvents::finish() {
  if (step_) decider_.end_step();
  step_.reset();
}

}  // namespace sluice::lab
