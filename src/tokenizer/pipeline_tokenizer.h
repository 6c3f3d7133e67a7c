// The tokenizer that tokenizer.json describes: added tokens, normalizer, pre-tokenizer, BPE or Unigram,
// template, decoder.
#pragma once

#include <memory>
#include <string>

#include "base/json/json.h"
#include "store/sidecar/table_sidecar.h"
#include "tokenizer/bpe/bpe.h"
#include "tokenizer/sentencepiece/unigram.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/stages/decoder.h"
#include "tokenizer/stages/normalizer.h"
#include "tokenizer/stages/pre_tokenizer.h"
#include "tokenizer/stages/token_template.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

struct TokenizerParts {
  std::unique_ptr<Bpe> bpe;  // either bpe or unigram
  std::unique_ptr<Unigram> unigram;
  AddedTokens added;  // prepare() not yet called
  // The description of the next three, as in tokenizer.json; null if they were themselves compiled.
  Json components;
  std::unique_ptr<Normalizer> normalizer;       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: the text is one piece
  std::unique_ptr<Decoder> decoder;             // null: tokens are joined by spaces
  TokenTemplate around;
  TokenId model_vocab = 0;  // ids below it without a token decode to nothing

  const Vocabulary& vocabulary() const { return bpe ? bpe->vocabulary() : unigram->vocabulary(); }
};

// Builds normalizer, pre-tokenizer and decoder from `components`: an object with one member for each existing
// component. `name` names it in errors.
void read_components(Json components, const std::string& name, TokenizerParts& parts);

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts);
// Loads the result of compile() (compiled_tokenizer.h).
std::unique_ptr<Tokenizer> load_compiled_pipeline(const JsonObject& description,
                                                  const store::TableSidecar& tables);

}  // namespace sluice::tokenizer
