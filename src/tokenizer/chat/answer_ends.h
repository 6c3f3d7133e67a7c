// What ends an answer, as its chat template has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat/chat_caps.h"
#include "tokenizer/text/token_id.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer {

struct AnswerEnds {
  std::vector<TokenId> tokens;     // beside those of the model
  std::vector<std::string> texts;  // where what the template writes behind an answer is no token
};

// `reasoning_end`: the text that ends reasoning, which does not end the answer.
AnswerEnds answer_ends(const ChatCaps& caps, const Tokenizer& tokenizer, std::string_view reasoning_end);

}  // namespace sluice::tokenizer
