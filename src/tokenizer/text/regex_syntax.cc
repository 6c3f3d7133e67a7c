#include "tokenizer/text/regex_syntax.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "base/error.h"
#include "tokenizer/text/unicode.h"

namespace sluice::tokenizer {
namespace {

// Members of a class, without the brackets.
constexpr std::string_view kSpace =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x00-\x08\x0e-\x1f\x21-\x84\x86-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e})"
    R"(\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{d7ff}\x{e000}-\x{10ffff})";

std::string range_text(char32_t first, char32_t last) {
  const auto a = static_cast<unsigned>(first);
  const auto b = static_cast<unsigned>(last);
  return a == b ? fmt::format("\\x{{{:x}}}", a) : fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", a, b);
}

// Characters newer than PCRE2's tables whose general category begins with `prefix`.
std::string newer(std::string_view prefix) {
  std::string out;
  for (const CategoryRange& range : newer_than_pcre2()) {
    if (range.category.substr(0, prefix.size()) == prefix) out += range_text(range.first, range.last);
  }
  return out;
}

std::string digits() { return R"(\p{Nd})" + newer("Nd"); }

// Oniguruma's \w. Outside a class it also matches the superscript digits and fractions of Latin-1.
std::string word_in_class() {
  return R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})" + newer("L") + newer("M") + newer("Nd");
}
std::string word() { return R"(\xb2\xb3\xb9\xbc-\xbe)" + word_in_class(); }

bool is_general_category(std::string_view name) {
  if (name.empty() || name.size() > 2) return false;
  constexpr std::array<std::string_view, 7> kCategories = {"C cfnos",   "L lmotu", "M cen", "N dlo",
                                                           "P cdefios", "S ckmo",  "Z lps"};
  for (const std::string_view category : kCategories) {
    if (name[0] != category[0]) continue;
    return name.size() == 1 || (name[1] != ' ' && category.substr(2).find(name[1]) != std::string_view::npos);
  }
  return false;
}

bool is_binary_property(std::string_view name) {
  return name == "Alphabetic" || name == "Uppercase" || name == "Lowercase" || name == "White_Space" ||
         name == "Emoji" || name == "Ideographic" || name == "Extended_Pictographic";
}

// The set `\p{name}` without brackets, and whether PCRE2's property had to be extended.
std::string property(std::string_view name, bool& extended) {
  extended = false;
  if (is_general_category(name)) {
    const std::string extra = newer(name);
    extended = !extra.empty();
    return fmt::format("\\p{{{}}}", name) + extra;
  }
  if (is_binary_property(name)) return fmt::format("\\p{{{}}}", name);
  // A script: only the script itself, because PCRE2's bare name includes script extensions.
  std::string out = fmt::format("\\p{{sc:{}}}", name);
  if (name == "Han") {
    extended = true;
    for (const CharRange& range : newer_han()) out += range_text(range.first, range.last);
  }
  return out;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    // A run of white space at the end of a line, which DeepSeek's tokenizers look for. Without the assertion,
    // matching would try every start inside a run that is not at the end, which is quadratic. The leftmost
    // match begins a run in any case.
    if (pattern_ == "\\s+$") return fmt::format("(?:(?<![{0}])|\\G)[{0}]+$", kSpace);
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        braces();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void unsupported(std::string_view what) const {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("regular expression uses {} at byte {} of the pattern", what, at_));
  }
  char peek(std::size_t ahead) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }

  void put_set(std::string_view members, bool in_class, bool negated) {
    if (in_class) {
      out_ += members;
    } else {
      out_ += negated ? "[^" : "[";
      out_ += members;
      out_ += ']';
    }
  }

  void escape(bool in_class) {
    const char c = peek(1);
    if (at_ + 1 >= pattern_.size()) unsupported("a backslash at its end");
    switch (c) {
      case 's':
        return take(2, [&] { put_set(kSpace, in_class, false); });
      case 'S':
        return take(2, [&] { put_set(in_class ? kNotSpace : kSpace, in_class, true); });
      case 'd':
        return take(2, [&] { put_set(digits(), in_class, false); });
      case 'w':
        return take(2, [&] { put_set(in_class ? word_in_class() : word(), in_class, false); });
      case 'h':
        return take(2, [&] { put_set("0-9a-fA-F", in_class, false); });
      case 'D':
      case 'W':
      case 'H':
        if (in_class) unsupported("a negated set inside a class");
        return take(2, [&] { put_set(c == 'D' ? digits() : c == 'W' ? word() : "0-9a-fA-F", false, true); });
      case 'b':
      case 'B':
        if (in_class) unsupported("a backspace");
        return take(2, [&] { word_boundary(c == 'b'); });
      case 'p':
      case 'P':
        return property_escape(in_class);
      case 'v':
        return take(2, [&] { out_ += "\\x0b"; });
      case 'u':
        return code_point();
      case 'x':
        return hexadecimal();
      case 'n':
      case 't':
      case 'r':
      case 'f':
      case 'a':
      case 'e':
        return copy(2);
      case 'A':
      case 'z':
      case 'Z':
      case 'K':
      case 'R':
        if (in_class) unsupported("an assertion inside a class");
        return copy(2);
      default:
        break;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (in_class || c == '0') unsupported("an octal escape");
      return copy(2);  // back reference
    }
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) unsupported(fmt::format("\\{}", c));
    if (static_cast<unsigned char>(c) >= 0x80) {  // an escaped character outside ASCII is itself
      ++at_;
      return;
    }
    copy(2);
  }

  template <class Put>
  void take(std::size_t bytes, Put put) {
    put();
    at_ += bytes;
  }
  void copy(std::size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }

  void word_boundary(bool at_boundary) {
    const std::string w = word();
    out_ += at_boundary ? fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", w)
                        : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", w);
  }

  void property_escape(bool in_class) {
    bool negated = peek(1) == 'P';
    if (peek(2) != '{') unsupported("a property without braces");
    const std::size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) unsupported("a property without an end");
    std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (const char c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') unsupported("an unknown property");
    }
    if (name.empty() || name.size() > 40) unsupported("an unknown property");
    bool extended = false;
    const std::string members = property(name, extended);
    if (in_class && negated) {
      // The few characters newer than PCRE2's tables stay in the negation, because a class has no set
      // difference.
      out_ += "\\P";
      out_ += std::string_view(members).substr(2, members.find('}') - 1);
    } else if (in_class) {
      out_ += members;
    } else if (extended) {
      put_set(members, false, negated);
    } else {
      std::string plain = members;
      if (negated) plain[1] = 'P';
      out_ += plain;
    }
    at_ = end + 1;
  }

  void code_point() {
    const std::string_view hex = pattern_.substr(at_ + 2 < pattern_.size() ? at_ + 2 : pattern_.size(), 4);
    if (hex.size() != 4) unsupported("an incomplete \\u");
    for (const char c : hex) {
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) unsupported("an incomplete \\u");
    }
    out_ += fmt::format("\\x{{{}}}", hex);
    at_ += 6;
  }

  void hexadecimal() {
    if (peek(2) == '{') {
      const std::size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) unsupported("an incomplete \\x");
      return copy(end + 1 - at_);
    }
    // Two digits are one byte to Oniguruma and one character to PCRE2: they agree only in ASCII.
    if (peek(2) < '0' || peek(2) > '7' || std::isxdigit(static_cast<unsigned char>(peek(3))) == 0) {
      unsupported("a raw byte");
    }
    copy(4);
  }

  void character_class() {
    ++at_;
    out_ += '[';
    if (peek(0) == '^') copy(1);
    if (peek(0) == ']') unsupported("an empty class");
    while (true) {
      if (at_ >= pattern_.size()) unsupported("a class without an end");
      const char c = pattern_[at_];
      if (c == ']') {
        copy(1);
        return;
      }
      if (c == '\\') {
        escape(true);
      } else if (c == '[') {
        unsupported("a class inside a class");
      } else if (c == '&' && peek(1) == '&') {
        unsupported("an intersection of classes");
      } else {
        copy(1);
      }
    }
  }

  void group() {
    if (peek(1) == '*') unsupported("a verb");
    if (peek(1) != '?') return copy(1);
    const char c = peek(2);
    if (c == ':' || c == '=' || c == '!' || c == '>') return copy(3);
    if (c == '<') return copy(3);  // look-behind or a name
    // Options: i and m (in Ruby syntax, "dot matches newline"; s in PCRE2).
    std::size_t end = at_ + 2;
    std::string options;
    while (end < pattern_.size() && (pattern_[end] == 'i' || pattern_[end] == 'm' || pattern_[end] == '-')) {
      options += pattern_[end] == 'm' ? 's' : pattern_[end];
      ++end;
    }
    if (options.empty() || end >= pattern_.size() || (pattern_[end] != ':' && pattern_[end] != ')')) {
      unsupported("an unknown kind of group");
    }
    out_ += "(?" + options + pattern_[end];
    at_ = end + 1;
  }

  void braces() {
    std::size_t end = at_ + 1;
    while (end < pattern_.size() &&
           (std::isdigit(static_cast<unsigned char>(pattern_[end])) != 0 || pattern_[end] == ',')) {
      ++end;
    }
    const std::string_view inside = pattern_.substr(at_ + 1, end - at_ - 1);
    const bool quantifier = end < pattern_.size() && pattern_[end] == '}' && !inside.empty() && inside != ",";
    if (!quantifier) {  // a literal brace in both syntaxes
      out_ += "\\{";
      ++at_;
      return;
    }
    const char after = end + 1 < pattern_.size() ? pattern_[end + 1] : '\0';
    if (after == '+') unsupported("{n}+");
    if (after == '?' && inside.find(',') == std::string_view::npos) unsupported("{n}?");
    out_ += inside[0] == ',' ? "{0" : "{";
    out_ += inside;
    out_ += '}';
    at_ = end + 1;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace sluice::tokenizer
