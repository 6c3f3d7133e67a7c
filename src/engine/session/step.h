// One forward step over some tokens of some sequences: chunks of prompts, decoded tokens, or both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "experts/core/sequence_span.h"
#include "tokenizer/text/token_id.h"

namespace sluice::experts {
class Worlds;  // experts/worlds.h
}
namespace sluice::model {
struct ModelConfig;  // model/config.h
}

namespace sluice::engine {

class EventAccount;  // engine/watch/event_account.h
class Sequence;      // sequence.h

using experts::StepKind;

// The tokens of one sequence in a step: tokens [first_token, first_token + tokens) of the step, at positions
// sequence->length() … of the sequence.
struct SequenceSpan {
  Sequence* sequence = nullptr;
  std::size_t first_token = 0;
  std::size_t tokens = 0;
  StepKind kind = StepKind::kPrompt;
  // A forward begins, as experts::SequenceSpan has it (next_span()).
  bool first_of_forward = true;
};

// The next tokens of a sequence in a decoder's step. A chunk of a prompt goes on with the forward of the
// chunk before it, whoever cuts the prompt; all else begins a forward: the first chunk that is computed,
// also behind tokens that were adopted or decoded, and a decoded token.
SequenceSpan next_span(Sequence& sequence, std::size_t first_token, std::size_t tokens, StepKind kind);

// Non-owning.
struct Step {
  std::span<const tokenizer::TokenId> tokens;  // tokens of all spans, one after the other
  std::span<const SequenceSpan> spans;         // cover all tokens, in order; one span a sequence
  // Set: the tokens are the encoder's input of one sequence, starting at this position; empty: a decoder's
  // tokens.
  std::optional<std::size_t> encoder_begin = std::nullopt;
  EventAccount* account = nullptr;  // is told what the step's experts cost; null: nobody is
  // Decide which experts compute decoded tokens, and are told of prompts; null: the engine's own policies
  // decide. Its spans are as these take them. REQUIRES: no device, and experts that are computed high.
  experts::Worlds* worlds = nullptr;

  StepKind kind() const;  // experts::step_kind
  std::size_t position(const SequenceSpan& span) const;
};

// Layers with routed experts that a step for a decoder's tokens passes: all of them, or those behind an
// encoder.
std::uint32_t sparse_layers_of_step(const model::ModelConfig& config);

// The spans as policies see them; replaces `out`.
void describe_spans(const Step& step, std::vector<experts::SequenceSpan>& out);

// Which tokens of a step need logits, and their receiver: called with the token's index in the step,
// ascending.
struct LogitSink {
  std::function<bool(std::size_t token)> wants;
  std::function<void(std::size_t token, std::span<const float> logits)> take;
};

}  // namespace sluice::engine
