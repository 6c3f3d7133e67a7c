// The tokenizer that tokenizer.json describes: added tokens, normalizer, pre-tokenizer, BPE or Unigram,
// template, decoder.
#pragma once

#include <memory>

#include "model/tokenizer.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/token_template.h"
#include "model/tokenizer/unigram.h"

namespace sluice::model {

struct TokenizerParts {
  std::unique_ptr<Bpe> bpe;  // one of these two
  std::unique_ptr<Unigram> unigram;
  AddedTokens added;                            // not yet prepared
  std::unique_ptr<Normalizer> normalizer;       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: the text is one piece
  std::unique_ptr<Decoder> decoder;             // null: tokens joined by spaces
  TokenTemplate around;
  TokenId model_vocab = 0;  // ids below this that are no token decode to nothing

  const Vocabulary& vocabulary() const { return bpe ? bpe->vocabulary() : unigram->vocabulary(); }
};

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts);

}  // namespace sluice::model
