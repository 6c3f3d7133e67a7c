// The fields of tokenizer_config.json that affect ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/stages/added_tokens.h"

namespace sluice::tokenizer {

struct TokenizerConfig {
  std::string tokenizer_class;  // without "Fast"; empty if the file has none
  std::optional<bool> add_bos, add_eos;
  std::string bos, eos;  // contents; empty: no such token
  bool add_prefix_space = false;
  std::vector<AddedToken> added;   // added_tokens_decoder, ascending ids
  TokenId model_vocab = 0;         // rows of the model's vocabulary; may exceed the number of tokens
  std::vector<std::string> named;  // contents of bos, eos, unk, pad and additional special tokens

  bool is_llama() const {
    return tokenizer_class == "LlamaTokenizer" || tokenizer_class == "CodeLlamaTokenizer";
  }
};

// `path` names a tokenizer_config.json; a missing file gives the defaults. Error(kInvalid) names file and
// field.
TokenizerConfig read_tokenizer_config(const std::string& path);

}  // namespace sluice::tokenizer
