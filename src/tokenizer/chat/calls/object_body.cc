#include "tokenizer/chat/calls/object_body.h"

#include <utility>

#include "tokenizer/chat/calls/argument_text.h"
#include "tokenizer/chat/calls/marks.h"

namespace sluice::tokenizer {

bool ObjectBody::end_key() {
  const std::string key = string_content(std::exchange(key_, {}));
  if (key == "name") {
    member_ = Member::kName;
    return name_.empty();
  }
  if (key == "arguments" || key == "parameters") {
    member_ = Member::kArguments;
    return !std::exchange(argued_, true);
  }
  member_ = Member::kIgnored;
  return key == "id" || key == "type";
}

ObjectBody::Fed ObjectBody::take_member(char byte, AnswerSink& sink) {
  if (member_ == Member::kName) name_ += byte;
  if (member_ != Member::kArguments) return Fed::kTaken;
  if (!named_) {
    early_ += byte;
    return Fed::kTaken;
  }
  sink.arguments({&byte, 1});
  return Fed::kGiven;
}

ObjectBody::Fed ObjectBody::end_member(AnswerSink& sink) {
  if (member_ != Member::kName || named_) return Fed::kTaken;
  const std::string name = name_.front() == '"' ? string_content(name_) : "";
  if (name.empty()) return Fed::kBad;
  named_ = true;
  sink.begin_call(name);
  sink.arguments(std::exchange(early_, {}));
  return Fed::kGiven;
}

ObjectBody::Fed ObjectBody::feed(char byte, AnswerSink& sink) {
  if (byte == kSpecialToken || (!cursor_.started() && byte != '{')) return Fed::kBad;
  if (cursor_.feed(byte) != JsonCursor::Fed::kTaken) return Fed::kBad;
  const JsonCursor::Place place = cursor_.place();
  if (place == JsonCursor::Place::kKey) {
    key_ += byte;
    return Fed::kTaken;
  }
  if (!key_.empty() && !end_key()) return Fed::kBad;
  Fed fed = Fed::kTaken;
  if (place == JsonCursor::Place::kMember) {
    fed = take_member(byte, sink);
    if (cursor_.member_ended() && member_ == Member::kName) return end_member(sink);
    return fed;
  }
  // A number ends only before what follows it; a name is none.
  if (member_ == Member::kName && !named_ && !name_.empty()) return Fed::kBad;
  if (!cursor_.ended()) return fed;
  if (!named_) return Fed::kBad;
  if (!sink.has_arguments()) sink.arguments("{}");
  sink.end_call();
  return Fed::kEnded;
}

}  // namespace sluice::tokenizer
