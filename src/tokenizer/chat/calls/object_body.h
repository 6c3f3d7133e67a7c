// The body of a call that is one object of JSON, {"name": …, "arguments": …}, read while it comes.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/chat/calls/answer_sink.h"
#include "tokenizer/chat/calls/json_cursor.h"

namespace sluice::tokenizer {

// Gives the name as soon as it is complete, and then the bytes of the arguments, which may have come before
// it. Thread-compatible.
class ObjectBody {
 public:
  enum class Fed {
    kTaken,
    kGiven,  // and the sink knows all that was taken
    kEnded,  // with this byte the object is whole, and the call has ended
    kBad     // the byte is not taken: this is no such object, or it cannot go on
  };
  Fed feed(char byte, AnswerSink& sink);

 private:
  enum class Member { kIgnored, kName, kArguments };
  bool end_key();  // false: a call has no such member, or has it already
  Fed take_member(char byte, AnswerSink& sink);
  Fed end_member(AnswerSink& sink);

  JsonCursor cursor_{JsonStrings::kLoose};
  Member member_ = Member::kIgnored;
  std::string key_, name_;  // as they are written
  std::string early_;       // arguments that came before the name
  bool named_ = false, argued_ = false;
};

}  // namespace sluice::tokenizer
