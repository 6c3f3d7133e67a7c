#include "lab/replay/decided_events.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kernels/elementwise/elementwise.h"

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
  scores_.assign(event.logits.begin(), event.logits.end());
  kernels::softmax_rows({}, scores_.data(), event.tokens, experts_);
  const experts::ScoresView scores{.layer = event.layer,
                                   .experts = experts_,
                                   .tokens = event.tokens,
                                   .logits = event.logits,
                                   .scores = scores_,
                                   .spans = spans_};
  if (decider_.policies().router)
    compare(event, decider_.route(scores));
  else
    decider_.follow(scores, event.choices, event.begin);
  return decider_.decide();
}

void DecidedEvents::finish() {
  if (step_) decider_.end_step();
  step_.reset();
}

void DecidedEvents::compare(const trace::TraceEvent& event, const experts::Routing& routing) {
  if (event.phase != trace::TracePhase::kPrefill) return;
  for (std::uint32_t t = 0; t < event.tokens; ++t) {
    const auto recorded = event.choices.subspan(event.begin[t], event.begin[t + 1] - event.begin[t]);
    recorded_differs_ +=
        std::ranges::equal(recorded, routing.token(t), {}, &experts::Choice::expert, &experts::Choice::expert)
            ? 0
            : 1;
  }
}

}  // namespace sluice::lab
