// BPE of SentencePiece: merges by score over the whole text, without a pre-tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json/json.h"
#include "store/sidecar/table_sidecar.h"
#include "tokenizer/sentencepiece/sentencepiece_model.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace sluice::tokenizer {

// `data` is the content of a tokenizer.model. `config` says whether bos and eos are added (as LlamaTokenizer:
// bos yes, eos no) and which added tokens are cut out of the text first. The text between them is encoded as
// by sentencepiece, dummy prefix included. Control pieces are special: decode(ShowSpecial::kNo) equals
// sentencepiece's Decode.
std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view data, const std::string& name,
                                              const TokenizerConfig& config = {});

struct SentencePieceFrame {
  TokenId bos = -1, eos = -1;  // added around a text; -1: not added
  TokenId model_vocab = 0;     // ids below it without a token decode to nothing
};
// The tokenizer of a model that some other file describes. REQUIRES: ids of `added` that are pieces of the
// model have their contents.
std::unique_ptr<Tokenizer> make_sentencepiece(SentencePieceModel model, AddedTokens added,
                                              const SentencePieceFrame& frame);
// Loads the result of compile() (compiled_tokenizer.h).
std::unique_ptr<Tokenizer> load_compiled_sentencepiece(const JsonObject& description,
                                                       const store::TableSidecar& tables);

}  // namespace sluice::tokenizer
