// GGUF files for the tokenizer tests: small ones of tests/fuzz/corpus, and the keys that llama.cpp's
// converter makes of other tokenizers.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"
#include "store/source/gguf.h"
#include "tokenizer/sentencepiece/sentencepiece_model.h"

namespace sluice::tokenizer::test {

store::GgufHeader small_gguf(const std::string& name);  // "bytes" "raw" "pieces"
// `tokenizer` is the content of a tokenizer.json of byte-level BPE.
store::GgufHeader gguf_of(const Json& tokenizer, std::string_view pre);
store::GgufHeader gguf_of(const SentencePieceModel& model);
void set(store::GgufHeader& header, std::string_view key, store::GgufValue value);
void remove(store::GgufHeader& header, std::string_view key);

}  // namespace sluice::tokenizer::test
