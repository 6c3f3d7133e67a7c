// The tokenizer that tokenizer.json describes: added tokens, normalizer, pre-tokenizer, BPE or Unigram,
// template, decoder.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "model/tokenizer.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/token_template.h"
#include "model/tokenizer/unigram.h"
#include "store/table_sidecar.h"

namespace sluice::model {

struct TokenizerParts {
  std::unique_ptr<Bpe> bpe;  // one of these two
  std::unique_ptr<Unigram> unigram;
  AddedTokens added;  // not yet prepared
  // The next three, as tokenizer.json describes them; null where these were themselves compiled.
  Json components;
  std::unique_ptr<Normalizer> normalizer;       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: the text is one piece
  std::unique_ptr<Decoder> decoder;             // null: tokens joined by spaces
  TokenTemplate around;
  TokenId model_vocab = 0;  // ids below this that are no token decode to nothing

  const Vocabulary& vocabulary() const { return bpe ? bpe->vocabulary() : unigram->vocabulary(); }
};

// Makes normalizer, pre-tokenizer and decoder of `components`: an object with a member for each that there
// is. `name` names it in errors.
void read_components(Json components, const std::string& name, TokenizerParts& parts);

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts);
// What compile() of one gave (compiled_tokenizer.h).
std::unique_ptr<Tokenizer> load_compiled_pipeline(const JsonObject& description,
                                                  const store::TableSidecar& tables);

}  // namespace sluice::model
