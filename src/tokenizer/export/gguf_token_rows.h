// The tokens of a tokenizer as a GGUF file lists them: one row for each row of the model's vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/export/tokenizer_contents.h"

namespace sluice::tokenizer {

struct GgufTokenRows {
  std::vector<std::string> contents;
  std::vector<std::int32_t> types;  // GgufTokenType
  std::vector<float> scores;        // scores of pieces; empty for BPE
};

// Rows without a token are "[PADn]", of type unused. `nfc`: the text is normalised. Error(kUnsupported),
// naming a field below `place`, for tokens whose rules a file cannot say. REQUIRES: every id is below `rows`.
GgufTokenRows gguf_rows_of_bpe(const TokenizerContents& contents, TokenId rows, bool nfc,
                               const std::string& place);
GgufTokenRows gguf_rows_of_pieces(const TokenizerContents& contents, TokenId rows, const std::string& place);

// "left right", the lowest rank first.
std::vector<std::string> gguf_merges_of(const TokenizerContents& contents, const std::string& place);

}  // namespace sluice::tokenizer
