// The tokenizer of a GGUF file, from its keys tokenizer.ggml.* (docs/formats.md, "Tokenizers of GGUF files").
#pragma once

#include <memory>
#include <string>

#include "base/stop_request.h"
#include "store/source/gguf.h"
#include "tokenizer/gguf/gguf_specials.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

// Null if the file has none: tokenizer.ggml.model is absent, `none` or `no_vocab`. `name` names the file in
// errors; `model_vocab` is the number of rows of the model's vocabulary (0: as many as tokens).
// Error(kUnsupported) names the key for models and patterns (tokenizer.ggml.pre) that this program does not
// know; Error(kInvalid) names key, expected and found for broken content. The header may go afterwards.
std::unique_ptr<Tokenizer> load_gguf_tokenizer(const store::GgufHeader& header, const std::string& name,
                                               TokenId model_vocab = 0, const StopRequest& stop = {});

}  // namespace sluice::tokenizer
