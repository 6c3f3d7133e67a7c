// The kinds of tokenizers that GGUF files name in tokenizer.ggml.model, one row each.
#pragma once

#include <string_view>

#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/text/token_id.h"

namespace sluice::tokenizer {

enum class GgufMerging {
  kByteLevel,  // BPE on bytes that became printable characters, cut by a pattern
  kRawText,    // BPE on the characters of the text, with U+2581 for blanks
  kScores,     // SentencePiece's BPE
};

struct GgufModel {
  std::string_view name;
  GgufMerging merging;
  TokenId bos, eos, unknown;  // where the file says nothing, if they are control tokens; -1: none
  bool add_bos;               // where the file says nothing
  bool always_bos;            // whatever the file says
};

// Null: the file has no tokenizer, or one that no row describes.
const GgufModel* find_gguf_model(const GgufKeys& keys);
// Likewise, but Error(kUnsupported) naming key and value where no row describes it.
const GgufModel* gguf_model_of(const GgufKeys& keys);

}  // namespace sluice::tokenizer
