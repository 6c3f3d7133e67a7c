#include "tokenizer/chat/calls/json_cursor.h"

#include <algorithm>

namespace sluice::tokenizer {
namespace {

bool is_blank_byte(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }
bool is_digit_byte(char byte) { return byte >= '0' && byte <= '9'; }
bool is_hex_byte(char byte) {
  return is_digit_byte(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

}  // namespace

bool JsonCursor::can_end() const { return ended() || (open_.empty() && in_number() && number_can_end()); }

bool JsonCursor::number_can_end() const {
  return state_ == State::kZero || state_ == State::kInteger || state_ == State::kFraction ||
         state_ == State::kExponentDigits;
}

JsonCursor::Fed JsonCursor::feed(char byte) {
  if (ended()) return Fed::kEnd;
  const std::size_t before = open_.size();
  const bool scalar = in_scalar() && !in_number();
  if (in_number() && !take_number(byte)) {
    if (!number_can_end()) return Fed::kBad;
    end_value();
    if (ended()) return Fed::kEnd;
    if (!take(byte)) return Fed::kBad;
  } else if (!in_number() && !take(byte)) {
    return Fed::kBad;
  }
  if (before > 1 || open_.size() > 1)
    place_ = Place::kMember;
  else if (before == 1 && (scalar || in_scalar()))
    place_ = key_ ? Place::kKey : Place::kMember;
  else
    place_ = Place::kOther;
  return Fed::kTaken;
}

bool JsonCursor::take(char byte) {
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kHex:
      return take_string(byte);
    case State::kWord:
      if (byte != word_.front()) return false;
      word_.remove_prefix(1);
      if (word_.empty()) end_value();
      return true;
    default:
      return is_blank_byte(byte) || take_between(byte);
  }
}

// A byte that is no blank, outside of strings, numbers and words.
bool JsonCursor::take_between(char byte) {
  const char open = open_.empty() ? '\0' : open_.back();
  const bool closes = (byte == '}' && open == '{') || (byte == ']' && open == '[');
  switch (state_) {
    case State::kFirstKey:
    case State::kFirstItem:
    case State::kAfterValue:
      if (closes) {
        open_.pop_back();
        end_value();
        return true;
      }
      if (state_ == State::kFirstItem) return take_value(byte);
      if (state_ == State::kAfterValue) {
        state_ = open == '{' ? State::kKey : State::kValue;
        return byte == ',';
      }
      [[fallthrough]];
    case State::kKey:
      begin_string(true);
      return byte == '"';
    case State::kColon:
      state_ = State::kValue;
      return byte == ':';
    default:
      return take_value(byte);
  }
}

void JsonCursor::begin_string(bool is_key) {
  key_ = is_key;
  state_ = State::kString;
}

bool JsonCursor::take_value(char byte) {
  key_ = false;
  switch (byte) {
    case '{':
    case '[':
      open_ += byte;
      state_ = byte == '{' ? State::kFirstKey : State::kFirstItem;
      return true;
    case '"':
      begin_string(false);
      return true;
    case 't':
    case 'f':
    case 'n':
      word_ = byte == 't' ? "rue" : byte == 'f' ? "alse" : "ull";
      state_ = State::kWord;
      return true;
    case '-':
      state_ = State::kMinus;
      return true;
    default:
      if (!is_digit_byte(byte)) return false;
      state_ = byte == '0' ? State::kZero : State::kInteger;
      return true;
  }
}

bool JsonCursor::take_string(char byte) {
  if (state_ == State::kHex) {
    if (!is_hex_byte(byte)) {
      if (strict_) return false;
      state_ = State::kString;
      return take_string(byte);
    }
    if (--hex_ == 0) state_ = State::kString;
    return true;
  }
  if (state_ == State::kEscape) {
    hex_ = 4;
    state_ = byte == 'u' ? State::kHex : State::kString;
    return !strict_ || std::string_view("\"\\/bfnrtu").find(byte) != std::string_view::npos;
  }
  if (byte == '\\')
    state_ = State::kEscape;
  else if (byte == '"' && key_)
    state_ = State::kColon;
  else if (byte == '"')
    end_value();
  return !strict_ || static_cast<unsigned char>(byte) >= 0x20;
}

// False where the number does not go on with this byte.
bool JsonCursor::take_number(char byte) {
  const auto go = [&](State next) {
    state_ = next;
    return true;
  };
  const bool digit = is_digit_byte(byte), exponent = byte == 'e' || byte == 'E';
  switch (state_) {
    case State::kMinus:
      return digit && go(byte == '0' ? State::kZero : State::kInteger);
    case State::kZero:
    case State::kInteger:
      if (digit) return state_ == State::kInteger;
      return (byte == '.' && go(State::kPoint)) || (exponent && go(State::kExponent));
    case State::kPoint:
      return digit && go(State::kFraction);
    case State::kFraction:
      return digit || (exponent && go(State::kExponent));
    case State::kExponent:
      if (byte == '+' || byte == '-') return go(State::kExponentSign);
      return digit && go(State::kExponentDigits);
    default:  // kExponentSign, kExponentDigits
      return digit && go(State::kExponentDigits);
  }
}

bool is_json(std::string_view text) {
  JsonCursor cursor(JsonStrings::kStrict);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const JsonCursor::Fed fed = cursor.feed(text[i]);
    if (fed == JsonCursor::Fed::kBad) return false;
    if (fed == JsonCursor::Fed::kEnd) return std::ranges::all_of(text.substr(i), is_blank_byte);
  }
  return cursor.can_end();
}

}  // namespace sluice::tokenizer
