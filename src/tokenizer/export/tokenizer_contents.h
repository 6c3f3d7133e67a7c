// A loaded tokenizer taken apart, from the tables that Tokenizer::compile() gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "tokenizer/sentencepiece/sentencepiece_model.h"
#include "tokenizer/stages/added_tokens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary/merges.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

struct TokenizerContents {
  enum class Kind { kBpe, kUnigram, kPieces } kind = Kind::kBpe;
  std::vector<AddedToken> added;
  std::vector<TokenId> before, after;  // what encode() adds around a text

  // BPE has these.
  Json components;  // normalizer, pre_tokenizer and decoder, as tokenizer.json spells them
  Vocabulary vocabulary;
  std::vector<Merges::Slot> merges;  // the lowest rank first
  std::optional<TokenId> unknown;
  bool ignore_merges = false;

  SentencePieceModel pieces;  // for Kind::kPieces
};

TokenizerContents contents_of(const Tokenizer& tokenizer);

}  // namespace sluice::tokenizer
