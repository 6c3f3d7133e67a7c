// Reads the text of an answer in one of the ways in which models write.
#pragma once

#include <string_view>

#include "tokenizer/chat/calls/answer_sink.h"

namespace sluice::tokenizer {

// Thread-compatible.
class AnswerMachine {
 public:
  virtual ~AnswerMachine() = default;
  // The text that the answer goes on from, without the beginning of the answer itself. Not tagged.
  virtual void begin(std::string_view prompt) = 0;
  virtual void append(std::string_view tagged) = 0;
  virtual void finish() = 0;
};

}  // namespace sluice::tokenizer
