// BPE of SentencePiece: merges by score over the whole text, without a pre-tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "store/sidecar/table_sidecar.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace sluice::tokenizer {

// `data` is the content of a tokenizer.model. `config` says whether bos and eos are added (as LlamaTokenizer:
// bos yes, eos no) and which added tokens are cut out of the text first. The text between them is encoded as
// by sentencepiece, dummy prefix included. Control pieces are special: decode(ShowSpecial::kNo) equals
// sentencepiece's Decode.
std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view data, const std::string& name,
                                              const TokenizerConfig& config = {});
// Loads the result of compile() (compiled_tokenizer.h).
std::unique_ptr<Tokenizer> load_compiled_sentencepiece(const JsonObject& description,
                                                       const store::TableSidecar& tables);

}  // namespace sluice::tokenizer
