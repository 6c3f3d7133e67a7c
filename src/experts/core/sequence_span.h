// Whose tokens a step has. A step may hold chunks of prompts beside decoded tokens of other sequences;
// policies that remember a request keep that by its sequence.
#pragma once

#include <cstdint>
#include <span>

#include "experts/core/step_kind.h"

namespace sluice::experts {

// Stable for the life of a sequence. In one run no other sequence has the same id, not even later.
using SequenceId = std::uint64_t;

// The tokens [first_token, first_token + tokens) of a step, which follow one another in one sequence.
struct SequenceSpan {
  SequenceId sequence = 0;
  std::uint32_t first_token = 0, tokens = 0;
  std::uint64_t position = 0;  // tokens of the sequence before these
  StepKind kind = StepKind::kDecode;
  // These tokens begin a forward: a prompt's first chunk, a decoded token. Rules that count a sequence's
  // tokens over a whole forward start again.
  bool first_of_forward = false;
};

// Whether the spans follow one another, none is empty, and together they have so many tokens.
inline bool cover(std::span<const SequenceSpan> spans, std::uint32_t tokens) {
  std::uint32_t next = 0;
  for (const SequenceSpan& span : spans) {
    if (span.first_token != next || span.tokens == 0) return false;
    next += span.tokens;
  }
  return next == tokens;
}

// The kind of a step, for all that is decided once for all of its tokens: a step that has prompt tokens is a
// prompt's step, whatever else is in it.
inline StepKind step_kind(std::span<const SequenceSpan> spans) {
  for (const SequenceSpan& span : spans)
    if (span.kind == StepKind::kPrompt) return StepKind::kPrompt;
  return StepKind::kDecode;
}

}  // namespace sluice::experts
