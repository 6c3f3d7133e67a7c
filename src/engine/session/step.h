// One forward step over some tokens of some sequences: a prefill, a chunk of one, or one decode step of a
// batch.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/session/sequence.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// The tokens of one sequence in a step: tokens [first_token, first_token + tokens) of the step, at positions
// sequence->length() … of the sequence.
struct SequenceSpan {
  Sequence* sequence = nullptr;
  std::size_t first_token = 0;
  std::size_t tokens = 0;
};

// For statistics; routers that change the model's routing do so only in decode steps.
enum class Phase { kPrefill, kDecode };

struct Step {
  std::span<const tokenizer::TokenId> tokens;  // of all spans, one after the other
  std::span<const SequenceSpan> spans;         // cover all tokens, in order
  Phase phase = Phase::kPrefill;
  // Set: the tokens are the encoder's input of one sequence, starting at this position; empty: a decoder's
  // tokens.
  std::optional<std::size_t> encoder_begin = std::nullopt;

  std::size_t position(const SequenceSpan& span) const {
    return encoder_begin.value_or(span.sequence->length());
  }
};

// Which tokens of a step need logits, and their receiver: called with the token's index in the step,
// ascending.
struct LogitSink {
  std::function<bool(std::size_t token)> wants;
  std::function<void(std::size_t token, std::span<const float> logits)> take;
};

}  // namespace sluice::engine
