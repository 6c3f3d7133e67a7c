#include "engine/session/step.h"

#include <algorithm>

namespace sluice::engine {

StepKind Step::kind() const {
  const bool prompt =
      std::ranges::any_of(spans, [](const SequenceSpan& span) { return span.kind == StepKind::kPrompt; });
  return prompt ? StepKind::kPrompt : StepKind::kDecode;
}

void describe_spans(const Step& step, std::vector<experts::SequenceSpan>& out) {
  out.clear();
  for (const SequenceSpan& span : step.spans)
    out.push_back({.sequence = span.sequence->id(),
                   .first_token = static_cast<std::uint32_t>(span.first_token),
                   .tokens = static_cast<std::uint32_t>(span.tokens),
                   .position = step.position(span),
                   .kind = span.kind,
                   .first_of_forward = span.first_of_forward});
}

}  // namespace sluice::engine
