// Byte-pair encoding by scores, as in SentencePiece: among all neighbours that join to a piece, joins the
// pair whose piece has the highest score first; ties: the leftmost.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/sentencepiece/sentencepiece_model.h"
#include "tokenizer/vocabulary/byte_trie.h"

namespace sluice::tokenizer {

// Immutable; thread-safe. Linear in the text except for the heap's logarithm.
class ScoreBpe {
 public:
  explicit ScoreBpe(const SentencePieceModel& model);  // `model` must outlive this

  // Appends the ids of `text`, which must be normalised. Without byte fallback a run of unknown characters is
  // one id.
  void encode(std::string_view text, std::vector<TokenId>& out) const;
  // Bytes at the front of `text` that are a user-defined piece; 0 if there is none.
  std::size_t user_defined_prefix(std::string_view text) const;

 private:
  struct Symbol {
    std::uint32_t begin, length;  // bytes in the segment; 0 once joined to the left
    std::int32_t previous, next;  // -1 at the ends
    bool frozen;                  // user-defined: never joined
  };
  struct Candidate {
    float score;
    std::int32_t left, right;
    std::uint32_t length;  // the joined piece's: a candidate whose symbols no longer have it is stale
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    // For each proposed unused piece: the length of the left symbol when it was last proposed.
    std::unordered_map<std::string_view, std::size_t> left_of_unused;
  };
  void encode_segment(std::string_view segment, Scratch& scratch, bool& unknown_before,
                      std::vector<TokenId>& out) const;
  bool propose(std::string_view segment, std::int32_t left, std::int32_t right, Scratch& scratch) const;
  void give(std::string_view piece, const Scratch& scratch, bool& unknown_before,
            std::vector<TokenId>& out) const;
  bool is_unused(TokenId id) const {
    return model_.types[static_cast<std::size_t>(id)] == PieceType::kUnused;
  }

  const SentencePieceModel& model_;
  ByteTrie user_defined_;
  // No piece has U+2581 after another character, and no piece is unused: joins never cross that boundary.
  bool cut_before_space_;
};

}  // namespace sluice::tokenizer
