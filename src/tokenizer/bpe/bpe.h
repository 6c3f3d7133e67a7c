// Byte-pair encoding of one piece of text, as the BPE model of Hugging Face tokenizers does it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/merges.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

struct BpeOptions {
  std::optional<TokenId> unknown;  // id of unk_token; without it unknown characters are dropped
  bool fuse_unknown = false;       // a run of unknown characters becomes one token
  // An unknown character becomes the tokens "<0xE4>" of its bytes, if all of them exist.
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is itself a token becomes that token
};

// Immutable; thread-safe. Linear in the piece except for the heap's logarithm, for any text.
class Bpe {
 public:
  // Buffers that encode() reuses; one per thread.
  class Scratch {
    friend class Bpe;
    struct Symbol {
      TokenId id;
      std::int32_t previous, next;  // -1 at the ends
      bool alive;
    };
    struct Candidate {
      std::uint64_t order;  // rank, then position: the smallest is merged first
      TokenId id;           // the joined token
      std::uint32_t position() const { return static_cast<std::uint32_t>(order); }
    };
    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
  };

  Bpe(Vocabulary vocabulary, Merges merges, BpeOptions options);

  // Appends the ids of `piece`, which must be well-formed UTF-8 of at most 2^31 - 1 characters.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const Merges& merges() const { return merges_; }
  const BpeOptions& options() const { return options_; }

 private:
  void add_symbols(std::string_view piece, Scratch& scratch) const;
  void merge(Scratch& scratch) const;
  void propose(Scratch& scratch, std::int32_t left, std::int32_t right) const;

  Vocabulary vocabulary_;
  Merges merges_;
  BpeOptions options_;
  // Tokens of one character below U+0180, which covers a byte-level alphabet.
  std::array<TokenId, 0x180> id_of_character_;
  std::array<TokenId, 256> id_of_byte_;  // "<0x00>" … "<0xFF>"; -1: no such token
};

}  // namespace sluice::tokenizer
