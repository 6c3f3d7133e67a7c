// Byte-pair encoding by scores, as SentencePiece has it: of all pairs of neighbours that join to a piece, the
// one whose piece has the highest score is joined first, the leftmost of equals.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/tokenizer/byte_trie.h"
#include "model/tokenizer/sentencepiece_model.h"

namespace sluice::model {

// Immutable; thread-safe. Linear in the text but for the heap's logarithm.
class ScoreBpe {
 public:
  explicit ScoreBpe(const SentencePieceModel& model);  // must outlive this

  // Appends the ids of `text`, already normalised. A run of unknown characters is one id without byte
  // fallback.
  void encode(std::string_view text, std::vector<TokenId>& out) const;
  // Bytes at the front of `text` that are a user-defined piece; 0 if they are none.
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
    std::uint32_t length;  // of the joined piece: a candidate is stale if its symbols no longer have it
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    // Of unused pieces that were proposed: the bytes of the left of the two they were last proposed from.
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
  bool cut_before_space_;  // no piece has U+2581 after another character, and none is unused: joins never
                           // cross that boundary
};

}  // namespace sluice::model
