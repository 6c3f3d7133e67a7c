// How a text is cut before its bytes are merged: the families of patterns that GGUF files name in
// tokenizer.ggml.pre, one row each.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/gguf/gguf_keys.h"
#include "tokenizer/gguf/gguf_model.h"

namespace sluice::tokenizer {

struct GgufPatterns {
  std::span<const std::string_view> names;
  std::span<const std::string_view> patterns;  // each cuts further what the one before it left
  bool ignore_merges = false;                  // a piece that is itself a token becomes that token
  bool add_bos = false;                        // where the file says nothing
  bool nfc = false;            // the text is normalised first, as the model's own tokenizer does
  bool ids_are_ranks = false;  // a file without merges joins what gives the lowest id
};

// Null: `model` has no patterns, or the file names none that a row describes.
const GgufPatterns* find_gguf_patterns(const GgufKeys& keys, const GgufModel& model);
// Error(kUnsupported) naming key and value where no row describes it. REQUIRES: a byte-level model.
const GgufPatterns& gguf_patterns_of(const GgufKeys& keys, const GgufModel& model);
std::span<const GgufPatterns> gguf_patterns();  // all of them

}  // namespace sluice::tokenizer
