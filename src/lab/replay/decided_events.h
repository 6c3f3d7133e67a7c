// The events of a trace with the logits of all experts, decided one after the other, as a run without a
// device decides them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experts/layer_decider.h"
#include "trace/routing_trace.h"

namespace sluice::lab {

class DecidedEvents {
 public:
  // Where the policies have no router, the recorded choices are followed; else it chooses anew.
  DecidedEvents(const trace::TraceHeader& header, experts::LayerPolicies policies);

  // REQUIRES: the events of one trace, in its order. The result is valid until the next call.
  const experts::LayerDecision& decide(const trace::TraceEvent& event);
  void finish();  // the last step has ended

  const experts::LayerDecider& decider() const { return decider_; }
  // Tokens of prompts in a layer whose recorded choice is not that of the router, which leaves prompts alone:
  // the model limits its selection by a rule that no trace says.
  std::uint64_t recorded_differs() const { return recorded_differs_; }

 private:
  const std::uint32_t experts_;
  experts::LayerDecider decider_;
  std::uint64_t recorded_differs_ = 0;
  std::optional<std::uint64_t> step_;         // that has begun
  std::vector<experts::SequenceSpan> spans_;  // the running event's
  std::vector<float> scores_;                 // (T, N) of the running event
};

}  // namespace sluice::lab
