#include "engine/grammar/answer_guide.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

AnswerGuide::AnswerGuide(std::shared_ptr<const Grammar> grammar, GrammarMasks& masks)
    : grammar_(std::move(grammar)), masks_(masks) {
  GrammarMachine machine(*grammar_);
  take(machine, machine.start());
}

void AnswerGuide::take(const GrammarMachine& machine, GrammarMachine::Set set) {
  place_ = machine.save(set);
  may_end_ = machine.may_end(set);
  goes_on_ = machine.goes_on(set);
}

std::span<const std::uint64_t> AnswerGuide::allowed() {
  const std::shared_ptr<const TokenBits> mask = masks_.mask(*grammar_, place_);
  TokenBits& bits = masks_.scratch();
  bits = *mask;
  for (const tokenizer::TokenId id : ends_) put_bit(bits, static_cast<std::size_t>(id), may_end_);
  const bool any = std::ranges::any_of(bits, [](std::uint64_t word) { return word != 0; });
  if (!any)
    throw Error(ErrorKind::kInvalid, "the answer cannot go on")
        .expected("a token of the vocabulary that the schema allows here")
        .found("none")
        .fix("use a schema whose text the model's vocabulary can write");
  return bits;
}

void AnswerGuide::accept(tokenizer::TokenId id) {
  if (std::ranges::find(ends_, id) != ends_.end()) {
    goes_on_ = false;
    return;
  }
  GrammarMachine machine(*grammar_);
  GrammarMachine::Set set = machine.load(place_);
  if (masks_.is_special(id)) {
    set = machine.step_token(set, id);
  } else {
    for (const char byte : masks_.bytes_of(id)) set = machine.step(set, static_cast<std::uint8_t>(byte));
  }
  SLUICE_CHECK(set != GrammarMachine::kDead, "a token that the grammar forbids was taken");
  take(machine, set);
}

}  // namespace sluice::engine
