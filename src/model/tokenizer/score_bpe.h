// Byte-pair encoding by scores, as SentencePiece has it: of all pairs of neighbours that join to a piece, the
// one whose piece has the highest score is joined first, the leftmost of equals.
#pragma once

#include <string_view>
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
  };
  void encode_segment(std::string_view segment, Scratch& scratch, bool& unknown_before,
                      std::vector<TokenId>& out) const;
  bool propose(std::string_view segment, std::int32_t left, std::int32_t right, Scratch& scratch) const;
  void give(std::string_view piece, bool& unknown_before, std::vector<TokenId>& out) const;

  const SentencePieceModel& model_;
  ByteTrie user_defined_;
  bool cut_before_space_;  // no piece has U+2581 after another character, so joins never cross that boundary
};

}  // namespace sluice::model
