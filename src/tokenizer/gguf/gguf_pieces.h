// The SentencePiece model of a GGUF file: its pieces with their scores.
#pragma once

#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/gguf/gguf_model.h"
#include "tokenizer/gguf/gguf_tokens.h"
#include "tokenizer/sentencepiece/sentencepiece_model.h"

namespace sluice::tokenizer {

// Error(kInvalid) for pieces that stand twice or are too long, scores that are missing or no numbers, bytes
// that are not all there, and a file without an unknown piece.
SentencePieceModel read_gguf_pieces(const GgufKeys& keys, const GgufModel& kind, const GgufTokens& tokens);

}  // namespace sluice::tokenizer
