#include "engine/session/step.h"

#include <algorithm>

#include "engine/session/sequence.h"
#include "model/config.h"

namespace sluice::engine {

SequenceSpan next_span(Sequence& sequence, std::size_t first_token, std::size_t tokens, StepKind kind) {
  return {&sequence, first_token, tokens, kind, kind == StepKind::kDecode || !sequence.in_prompt()};
}

std::size_t Step::position(const SequenceSpan& span) const {
  return encoder_begin.value_or(span.sequence->length());
}

StepKind Step::kind() const {
  const bool prompt =
      std::ranges::any_of(spans, [](const SequenceSpan& span) { return span.kind == StepKind::kPrompt; });
  return prompt ? StepKind::kPrompt : StepKind::kDecode;
}

std::uint32_t sparse_layers_of_step(const model::ModelConfig& config) {
  return static_cast<std::uint32_t>(
      std::count(config.sparse.begin() + config.encoder_layers, config.sparse.end(), true));
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
