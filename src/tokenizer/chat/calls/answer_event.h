// What an answer consists of, piece by piece as it comes.
#pragma once

#include <cstddef>
#include <string>

namespace sluice::tokenizer {

struct AnswerEvent {
  enum class Kind {
    kReasoning,      // text
    kContent,        // text; stop strings act on it alone
    kCallBegin,      // id, name
    kCallArguments,  // text: more bytes of the arguments' JSON
    kCallEnd         // always comes once a call has begun, and before another begins
  };
  Kind kind = Kind::kContent;
  std::size_t call = 0;  // for the three of calls: 0, 1, … in the answer
  std::string id, name;
  std::string text;  // never empty where there is one
  bool operator==(const AnswerEvent&) const = default;
};

}  // namespace sluice::tokenizer
