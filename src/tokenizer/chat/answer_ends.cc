#include "tokenizer/chat/answer_ends.h"

namespace sluice::tokenizer {

AnswerEnds answer_ends(const ChatCaps& caps, const Tokenizer& tokenizer, std::string_view reasoning_end) {
  AnswerEnds ends;
  if (const auto end = end_of_turn(caps, tokenizer)) {
    if (tokenizer.decode({&*end, 1}, ShowSpecial::kYes) != reasoning_end) ends.tokens.push_back(*end);
  } else if (!caps.behind_answer.empty()) {
    ends.texts.push_back(caps.behind_answer.substr(0, caps.behind_answer.find('\n')));
  }
  return ends;
}

}  // namespace sluice::tokenizer
