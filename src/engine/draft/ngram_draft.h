// Which tokens may come next: those that followed when the text last ended as it does now. After
// prompt-lookup decoding (A. Saxena, 2023).
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "engine/plan/draft_kind.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// A proposal, the first token first.
struct Draft {
  std::array<tokenizer::TokenId, kMostDrafts> ids{};
  std::size_t count = 0;  // the number of ids
  std::size_t match = 0;  // this many last tokens of the text stand before it in the text, too

  std::span<const tokenizer::TokenId> tokens() const { return std::span(ids).first(count); }
};

// At least this many tokens agree, and no more are looked at.
inline constexpr std::size_t kShortestMatch = 2, kLongestMatch = 16;
// Text further back is not searched: what a search takes is bounded, some ten microseconds.
inline constexpr std::size_t kDraftReach = 32768;  // tokens

// Looks for the longest end of `text` that is also somewhere before, the latest of equally long ones, and
// copies what follows there, going on in the copy where the text ends. Needs no memory. Empty if nothing
// agrees, else `most` tokens.
Draft ngram_draft(std::span<const tokenizer::TokenId> text, std::size_t most = kMostDrafts);

}  // namespace sluice::engine
