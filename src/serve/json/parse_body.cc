#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "serve/json/body_value.h"
#include "serve/json/utf8.h"

namespace sluice::serve {
namespace {

// A key, twice, in the object and in the table of its places.
constexpr std::size_t kMemberBytes = 4 * sizeof(std::string) + 64;

class BodyParser {
 public:
  BodyParser(std::string_view text, const BodyLimits& limits) : text_(text), limits_(limits) {}

  BodyValue parse() {
    BodyValue value = parse_value(0);
    skip_blanks();
    if (at_ != text_.size()) fail("expected the end of the text behind the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw BodyFault(at_, message); }

  void skip_blanks() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != '\0') ++at_;
  }
  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) fail("expected a value");
    at_ += word.size();
  }

  // Vectors that grow have room for twice what they hold.
  void charge(std::size_t bytes) {
    memory_ += bytes;
    if (memory_ > limits_.memory)
      throw BodyTooLarge(at_, "the body has too many values for the server's memory");
  }

  BodyValue parse_value(std::size_t depth) {
    charge(2 * sizeof(BodyValue));
    skip_blanks();
    if (at_ >= text_.size()) fail("expected a value, found the end of the text");
    switch (text_[at_]) {
      case '{':
        return parse_object(depth + 1);
      case '[':
        return parse_array(depth + 1);
      case '"':
        return BodyValue(parse_string());
      case 't':
        take_word("true");
        return BodyValue(true);
      case 'f':
        take_word("false");
        return BodyValue(false);
      case 'n':
        take_word("null");
        return {};
      default:
        return parse_number();
    }
  }

  void enter(std::size_t depth) {
    if (depth > limits_.depth) fail("more than " + std::to_string(limits_.depth) + " levels");
    ++at_;
    skip_blanks();
  }

  BodyValue parse_array(std::size_t depth) {
    enter(depth);
    BodyValue::Array elements;
    if (take(']')) return BodyValue(std::move(elements));
    do {
      elements.push_back(parse_value(depth));
      skip_blanks();
    } while (take(','));
    if (!take(']')) fail("expected ',' or ']'");
    return BodyValue(std::move(elements));
  }

  BodyValue parse_object(std::size_t depth) {
    enter(depth);
    BodyValue::Object members;
    std::unordered_map<std::string, std::size_t> places;
    if (take('}')) return BodyValue(std::move(members));
    do {
      skip_blanks();
      if (at_ >= text_.size() || text_[at_] != '"') fail("expected a string as a key");
      std::string key = parse_string();
      charge(kMemberBytes + key.size());
      skip_blanks();
      if (!take(':')) fail("expected ':'");
      const auto [place, is_new] = places.emplace(key, members.size());
      if (is_new && members.size() == limits_.keys)
        fail("more than " + std::to_string(limits_.keys) + " keys in an object");
      BodyValue value = parse_value(depth);
      if (is_new) {
        members.emplace_back(std::move(key), std::move(value));
      } else {
        members[place->second].second = std::move(value);
      }
      skip_blanks();
    } while (take(','));
    if (!take('}')) fail("expected ',' or '}'");
    return BodyValue(std::move(members));
  }

  std::string parse_string() {
    ++at_;
    std::string value;
    while (true) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      const std::string_view plain = text_.substr(begin, at_ - begin);
      if (const std::size_t wrong = invalid_utf8(plain); wrong != plain.npos) {
        at_ = begin + wrong;
        fail("the text is not UTF-8");
      }
      charge(plain.size());
      value += plain;
      if (at_ >= text_.size()) fail("expected '\"', found the end of the text");
      if (take('"')) return value;
      if (!take('\\')) fail("a control character stands in a string without being escaped");
      parse_escape(value);
    }
  }

  void parse_escape(std::string& value) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) fail("expected an escape, found the end of the text");
    const std::size_t simple = kLetters.find(text_[at_]);
    if (simple != kLetters.npos) {
      value += kMeanings[simple];
      ++at_;
      return;
    }
    if (!take('u')) fail("unknown escape in a string");
    std::uint32_t code = parse_hex();
    if (code >= 0xdc00 && code < 0xe000) fail("a lone surrogate");
    if (code >= 0xd800 && code < 0xdc00) {
      if (!take('\\') || !take('u')) fail("a lone surrogate");
      const std::uint32_t low = parse_hex();
      if (low < 0xdc00 || low >= 0xe000) fail("a lone surrogate");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(value, code);
  }

  std::uint32_t parse_hex() {
    std::uint32_t code = 0;
    const char* begin = text_.data() + at_;
    if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4 ||
        *begin == '-')
      fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  std::size_t take_digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  }

  BodyValue parse_number() {
    const std::size_t begin = at_;
    take('-');
    const bool zero = at_ < text_.size() && text_[at_] == '0';
    const std::size_t digits = take_digits();
    if (digits == 0 || (zero && digits > 1)) fail("expected a value");
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (take_digits() == 0) fail("expected digits behind the point");
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('-')) take('+');
      if (take_digits() == 0) fail("expected digits of an exponent");
    }
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    std::int64_t integer = 0;
    if (whole && std::from_chars(first, last, integer).ec == std::errc()) return BodyValue(integer);
    double real = 0;
    if (std::from_chars(first, last, real).ec == std::errc::result_out_of_range && !is_tiny(first, last))
      fail("the number is too large");
    return BodyValue(real);
  }

  // Numbers that a double does not hold since they are too close to zero; they count as zero.
  static bool is_tiny(const char* first, const char* last) {
    const std::string_view text(first, static_cast<std::size_t>(last - first));
    if (const std::size_t exponent = text.find_first_of("eE"); exponent != text.npos)
      return text[exponent + 1] == '-';
    return text.find('.') != text.npos && text.find('.') <= 2;
  }

  const std::string_view text_;
  const BodyLimits limits_;
  std::size_t memory_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

BodyValue parse_body(std::string_view text, const BodyLimits& limits) {
  return BodyParser(text, limits).parse();
}

}  // namespace sluice::serve
