// A question and one of its answers as token ids, cut as lm-evaluation-harness cuts them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "eval/choice_item.h"
#include "model/tokenizer.h"

namespace sluice::eval {

// A model is given all tokens but the last, and asked for tokens [scored, size).
struct ChoiceRequest {
  std::vector<model::TokenId> tokens;
  std::size_t scored = 0;          // at least 1: the first token of the answer
  std::size_t context_tokens = 0;  // of the question, also those that were cut off
  std::size_t fed() const { return tokens.size() - 1; }
};

// One for each choice. Context and answer are tokenized together, with the special tokens that the tokenizer
// adds, and split behind as many tokens as the context has by itself; white space at the end of the context
// counts as the answer's. Of what is longer than `most_tokens` (the most that are fed) the front is cut off.
// Error(kInvalid) naming `place` if an answer adds no token, is longer than that, or the question has no
// token.
std::vector<ChoiceRequest> encode_choices(const model::Tokenizer& tokenizer, const ChoiceItem& item,
                                          std::size_t most_tokens, const std::string& place);

}  // namespace sluice::eval
