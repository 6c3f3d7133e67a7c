// The name that tokenizer.ggml.pre has for the way in which a tokenizer of byte-level BPE cuts text.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/export/tokenizer_contents.h"

namespace sluice::tokenizer {

// Whether the text's bytes are what is merged.
bool is_byte_level(const TokenizerContents& contents);

struct GgufCut {
  std::string_view name;  // the value of tokenizer.ggml.pre
  bool nfc = false;       // the text is normalised first
};

// Error(kUnsupported), naming a field below `place`, for stages that no name stands for. REQUIRES:
// is_byte_level().
GgufCut gguf_cut_of(const TokenizerContents& contents, const std::string& place);

// What no GGUF file can say. The field is named by `place`.
[[noreturn]] void refuse_for_gguf(std::string_view message, const std::string& place,
                                  std::string_view expected, std::string_view found);

}  // namespace sluice::tokenizer
