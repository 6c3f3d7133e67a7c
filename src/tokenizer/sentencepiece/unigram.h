// The most likely way to cut one piece of text into tokens, each with its own log probability: the Unigram
// model of SentencePiece (arXiv 1804.10959 §3.2), as Hugging Face tokenizers computes it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/byte_trie.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace sluice::tokenizer {

struct UnigramOptions {
  // Without it, a character that no token begins with is Error(kInvalid).
  std::optional<TokenId> unknown;
  // Unknown text becomes the tokens "<0xE4>" of its bytes, if all of them exist.
  bool byte_fallback = false;
};

// Immutable; thread-safe. A run of unknown characters is one token. Time: length of the piece times length of
// the longest token.
class Unigram {
 public:
  static constexpr std::size_t kMaxTokenBytes = 1024;

  // Buffers that encode() reuses; one per thread.
  class Scratch {
   public:
    // By id: tokens that text cannot become. Null: none. Must outlive the calls.
    const std::vector<bool>* refused = nullptr;

   private:
    friend class Unigram;
    struct Node {  // the best path that ends at this byte
      double score = 0.0;
      std::uint32_t begin = 0;  // start of its last token
      TokenId id = kNone;
    };
    static constexpr TokenId kNone = -1;
    struct Part {
      std::uint32_t begin, end;
      bool unknown;
    };
    std::vector<Node> best_;
    std::vector<Part> parts_;
  };

  // `scores` by id, finite, for every id below vocabulary.end_id(). Tokens are at most kMaxTokenBytes long.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, const UnigramOptions& options);
  // The same with the search tree of all tokens that trie() returned.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, const UnigramOptions& options, ByteTrie trie);

  // Appends the ids of `piece`, which must be well-formed UTF-8 of less than 2^32 bytes.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::span<const double> scores() const { return scores_; }
  const UnigramOptions& options() const { return options_; }
  const ByteTrie& trie() const { return trie_; }

 private:
  void find_best(std::string_view piece, Scratch& scratch) const;
  void append_ids(std::string_view text, const Scratch& scratch, std::vector<TokenId>& out) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  UnigramOptions options_;
  double unknown_score_ = 0.0;
  ByteTrie trie_;
  std::array<TokenId, 256> id_of_byte_;  // "<0x00>" … "<0xFF>"; -1: no such token
};

}  // namespace sluice::tokenizer
