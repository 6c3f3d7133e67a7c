// Follows one value of JSON byte by byte, while it comes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::tokenizer {

// How JSON must be written. Models write line breaks and unknown escapes into strings; those are taken where
// a value is passed on as it is.
enum class JsonStrings { kStrict, kLoose };

// Thread-compatible.
class JsonCursor {
 public:
  explicit JsonCursor(JsonStrings strings) : strict_(strings == JsonStrings::kStrict) {}

  enum class Fed {
    kTaken,
    kEnd,  // the value has ended before this byte
    kBad   // the value cannot go on with this byte
  };
  // Blanks before the value are taken. After kEnd and kBad nothing may be fed.
  Fed feed(char byte);

  bool ended() const { return state_ == State::kDone; }  // no byte of it can come
  bool can_end() const;                                  // it is whole if no byte comes
  bool started() const { return state_ != State::kValue || !open_.empty(); }

  // About the byte fed last, for a value that is an object: whether it belongs to a key of this object, or to
  // the value of one of its members.
  enum class Place { kKey, kMember, kOther };
  Place place() const { return place_; }
  // The member that was begun last is whole.
  bool member_ended() const { return open_.size() == 1 && state_ == State::kAfterValue; }

 private:
  enum class State {
    kValue,
    kFirstItem,
    kFirstKey,
    kKey,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kHex,
    kWord,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kDone
  };
  bool in_number() const { return state_ >= State::kMinus && state_ <= State::kExponentDigits; }
  bool in_scalar() const { return state_ >= State::kString && state_ <= State::kExponentDigits; }
  bool number_can_end() const;
  bool take(char byte);  // false: kBad
  bool take_value(char byte);
  bool take_string(char byte);
  bool take_number(char byte);
  bool take_between(char byte);
  void begin_string(bool is_key);
  void end_value() { state_ = open_.empty() ? State::kDone : State::kAfterValue; }

  bool strict_;
  bool key_ = false;  // the string is a key
  int hex_ = 0;       // digits of \u that are missing
  State state_ = State::kValue;
  Place place_ = Place::kOther;
  std::string open_;       // '{' and '[' that are open
  std::string_view word_;  // what is missing of true, false, null
};

// Whether a text is one value of JSON, with blanks around it.
bool is_json(std::string_view text);

}  // namespace sluice::tokenizer
