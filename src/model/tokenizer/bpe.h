// Byte-pair encoding of one piece of text, as the BPE model of Hugging Face tokenizers does it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/merges.h"
#include "model/tokenizer/vocabulary.h"

namespace sluice::model {

struct BpeOptions {
  std::optional<TokenId> unknown;  // id of unk_token; without it unknown characters are dropped
  bool fuse_unknown = false;       // a run of unknown characters is one token
  bool byte_fallback = false;  // an unknown character becomes its bytes' tokens "<0xE4>", if all are there
  bool ignore_merges = false;  // a piece that is a token as a whole is that token
};

// Immutable; thread-safe. Linear in the piece but for the heap's logarithm, whatever the text.
class Bpe {
 public:
  // Buffers that encode() may use again; one per thread.
  class Scratch {
    friend class Bpe;
    struct Symbol {
      TokenId id;
      std::int32_t previous, next;  // -1 at the ends
      bool alive;
    };
    struct Candidate {
      std::uint64_t order;  // rank, then position: the least is merged first
      TokenId id;           // what the pair becomes
      std::uint32_t position() const { return static_cast<std::uint32_t>(order); }
    };
    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
  };

  Bpe(Vocabulary vocabulary, Merges merges, BpeOptions options);

  // Appends the ids of `piece`, which is well-formed UTF-8 of at most 2^31 - 1 characters.
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
  std::array<TokenId, 0x180>
      id_of_character_;                  // tokens of one character below U+0180: all of a byte-level alphabet
  std::array<TokenId, 256> id_of_byte_;  // "<0x00>" … "<0xFF>"; -1 if there is none
};

}  // namespace sluice::model
