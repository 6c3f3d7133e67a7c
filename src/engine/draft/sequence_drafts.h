// The drafts of one sequence: what its own text proposes, and how often that has come true.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "engine/draft/ngram_draft.h"
#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// How likely it is that at least the first 1, 2 … tokens of a draft come true, by how much text agreed.
// Measured: each proposal is compared with what was drawn, whether it was computed or not, so that knowing
// costs nothing. Pure; thread-compatible.
class DraftOdds {
 public:
  DraftOdds();
  // The first `true_tokens` of a draft of `count` tokens came true, and not the next.
  void count(std::size_t match, std::size_t count, std::size_t true_tokens);
  // At least `tokens`, 1 … kMostDrafts, come true.
  double chance(std::size_t match, std::size_t tokens) const;

 private:
  // Matches of 2, 3, 4 to 7, 8 to 15, 16 tokens.
  static constexpr std::size_t kClasses = 5;
  static std::size_t class_of(std::size_t match);

  struct Class {
    std::array<double, kMostDrafts> chance{};
    double seen = 0;
  };
  std::array<Class, kClasses> classes_;
};

// Thread-compatible. Bounded: a few hundred bytes.
class SequenceDrafts {
 public:
  // `text`: the prompt and the answer so far, one token or more longer than at the last call, and otherwise
  // the same. Learns what became of earlier proposals, and makes one of kMostDrafts tokens, or an empty one.
  const Draft& propose(std::span<const tokenizer::TokenId> text);
  // How likely it is that at least this many tokens of the last proposal come true.
  double chance(std::size_t tokens) const { return odds_.chance(draft_.match, tokens); }

 private:
  struct Open {
    Draft draft;
    std::size_t position = 0;  // the place of its first token
    bool open = false;         // it is not yet known how much of it comes true
  };
  void learn(std::span<const tokenizer::TokenId> text);

  DraftOdds odds_;
  Draft draft_;
  std::array<Open, kMostDrafts + 1> made_;
  std::size_t next_ = 0;  // the next place in made_
};

}  // namespace sluice::engine
