// Leads one answer through its grammar, token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/grammar_machine.h"
#include "engine/grammar/grammar_masks.h"

namespace sluice::engine {

// Used by the thread of its masks, which must outlive it.
class AnswerGuide {
 public:
  AnswerGuide(std::shared_ptr<const Grammar> grammar, GrammarMasks& masks);

  // The tokens that end an answer.
  void set_ends(std::vector<tokenizer::TokenId> ends) { ends_ = std::move(ends); }
  // A bit for each token that may come next; valid until masks are asked again. Error(kInvalid) if no
  // token of the vocabulary goes on, and the answer may not end either.
  std::span<const std::uint64_t> allowed();
  void accept(tokenizer::TokenId id);
  bool may_end() const { return may_end_; }
  // Nothing but an end may follow.
  bool complete() const { return may_end_ && !goes_on_; }

 private:
  void take(const GrammarMachine& machine, GrammarMachine::Set set);

  const std::shared_ptr<const Grammar> grammar_;
  GrammarMasks& masks_;
  std::vector<tokenizer::TokenId> ends_;
  GrammarPlace place_;
  bool may_end_ = false, goes_on_ = true;
};

}  // namespace sluice::engine
