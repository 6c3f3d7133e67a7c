// A question and one of its answers as token ids, cut like lm-evaluation-harness does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "eval/tasks/choice_item.h"
#include "tokenizer/tokenizer.h"

namespace sluice::eval {

// The model gets all tokens except the last, and tokens [scored, size) are scored.
struct ChoiceRequest {
  std::vector<tokenizer::TokenId> tokens;
  std::size_t scored = 0;          // at least 1: the first token of the answer
  std::size_t context_tokens = 0;  // tokens of the question, including those cut off
  std::size_t fed() const { return tokens.size() - 1; }
};

// One request for each choice. Context and answer are tokenized together, with the special tokens that the
// tokenizer adds, and split behind as many tokens as the context has alone; white space at the end of the
// context belongs to the answer. A request longer than `most_tokens` (the most that are fed) loses its front.
// Error(kInvalid) naming `place` if an answer adds no token, is longer than that, or the question has no
// token.
std::vector<ChoiceRequest> encode_choices(const tokenizer::Tokenizer& tokenizer, const ChoiceItem& item,
                                          std::size_t most_tokens, const std::string& place);

}  // namespace sluice::eval
