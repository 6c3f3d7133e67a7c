// Computes an encoder's input, for encoder-decoders. SPEC §9.
#pragma once

#include <functional>
#include <span>

#include "engine/forward/forward_parts.h"
#include "engine/forward/models.h"
#include "engine/session/sequence.h"

namespace sluice::engine {

// Computes the whole input of a sequence, layer by layer, each over all chunks. False when `go_on` (called
// before every chunk; may be empty) returned false: the sequence then has no input, as after an error. Counts
// the input as prefill. Error(kInvalid) for token ids out of range and for more tokens than the sequence has
// room for; otherwise as Pass::advance. REQUIRES: at least one token; a sequence without decoded tokens; no
// pass is open.
bool encode_input(const ForwardParts& parts, const models::EncoderForward& encoder, Sequence& sequence,
                  std::span<const tokenizer::TokenId> tokens, const std::function<bool()>& go_on);

}  // namespace sluice::engine
