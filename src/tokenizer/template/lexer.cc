#include "tokenizer/template/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tokenizer/template/characters.h"
#include "tokenizer/template/number_text.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer::jinja {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_name_byte(char c) {
  return is_decimal(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

// "\r\n" and "\r" become "\n"; one line break at the end is dropped.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string source, std::string_view name) : source_(std::move(source)), name_(name) {}

  std::vector<Token> cut() {
    while (at_ < source_.size()) read_text();
    add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) { throw template_error(name_, place(at_), what); }

  // REQUIRES: no call has asked for a later place
  Place place(std::size_t at) {
    for (; counted_ < at; ++counted_) {
      if (source_[counted_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((source_[counted_] & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
    return place_;
  }
  Token& add(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, std::move(text), place(at_)});
    return tokens_.back();
  }
  bool sees(std::string_view word, std::size_t at) const {
    return std::string_view(source_).substr(std::min(at, source_.size())).starts_with(word);
  }
  std::size_t behind_space(std::size_t at) const {
    return at + space_at_start(std::string_view(source_).substr(at));
  }
  // Behind the closing sign and tag at `at`, with what they swallow; 0 if none stands there.
  std::size_t behind_end(std::size_t at, std::string_view end, bool trims_line) const {
    if (at < source_.size() && source_[at] == '-' && sees(end, at + 1)) return behind_space(at + 3);
    if (trims_line && at < source_.size() && source_[at] == '+' && sees(end, at + 1)) return at + 3;
    if (!sees(end, at)) return 0;
    return at + 2 + (trims_line && sees("\n", at + 2) ? 1 : 0);
  }

  // Drops the white space before a tag that has this sign. Blanks before a block at the start of a line go,
  // too.
  std::string_view before_tag(std::string_view text, char sign, bool output) const {
    if (sign == '-') return text.substr(0, space_at_end(text));
    if (sign == '+' || output) return text;
    const std::size_t line = text.rfind('\n') + 1;  // 0 if there is none
    if (line == 0 && !line_starts_) return text;
    const std::string_view last = text.substr(line);
    return !last.empty() && space_at_start(last) == last.size() ? text.substr(0, line) : text;
  }

  char sign_at(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : ' ';
  }

  // Behind "{% raw %}", if that stands here; else 0.
  std::size_t behind_raw(std::size_t at, std::string_view word) const {
    std::size_t next = at + 2;
    if (sign_at(next) != ' ') ++next;
    next = behind_space(std::min(next, source_.size()));
    if (!sees(word, next)) return 0;
    next = behind_space(next + word.size());
    return word == "raw" ? behind_end(next, "%}", false) : behind_end(next, "%}", true);
  }

  // Text up to the next tag, and that tag.
  void read_text() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add_text(std::string_view(source_).substr(begin));
        at_ = source_.size();
        return;
      }
      if (source_[tag + 1] == '%' || source_[tag + 1] == '{' || source_[tag + 1] == '#') break;
    }
    const char kind = source_[tag + 1], sign = sign_at(tag + 2);
    add_text(before_tag(std::string_view(source_).substr(begin, tag - begin), sign, kind == '{'));
    at_ = tag;
    if (kind == '%') {
      if (const std::size_t next = behind_raw(tag, "raw")) return read_raw(next);
    }
    if (kind == '#') return read_comment(tag + 2 + (sign == ' ' ? 0 : 1));
    add(kind == '{' ? TokenKind::kOutputBegin : TokenKind::kBlockBegin);
    at_ = tag + 2 + (sign == ' ' ? 0 : 1);
    line_starts_ = false;
    read_tag(kind == '{');
  }

  void add_text(std::string_view text) {
    if (!text.empty()) add(TokenKind::kText, std::string(text));
  }

  void read_comment(std::size_t from) {
    for (std::size_t at = from; at < source_.size(); ++at) {
      const std::size_t next = behind_end(at, "#}", true);
      if (next == 0) continue;
      at_ = next;
      line_starts_ = source_[next - 1] == '\n';
      return;
    }
    fail("this comment has no end: expected \"#}\"");
  }

  void read_raw(std::size_t from) {
    // The blanks that a "-%}" swallowed count for the start of a line, as in jinja2.
    line_starts_ = source_[from - 1] == '\n';
    for (std::size_t at = from; (at = source_.find("{%", at)) != std::string::npos; ++at) {
      const std::size_t next = behind_raw(at, "endraw");
      if (next == 0) continue;
      const std::string_view text =
          before_tag(std::string_view(source_).substr(from, at - from), sign_at(at + 2), false);
      at_ = from;
      add_text(text);
      at_ = next;
      line_starts_ = source_[next - 1] == '\n';
      return;
    }
    fail("this raw block has no end: expected \"{% endraw %}\"");
  }

  void read_tag(bool output) {
    const std::string_view end = output ? "}}" : "%}";
    std::string open;  // the brackets that must be closed
    for (;;) {
      if (open.empty()) {
        if (const std::size_t next = behind_end(at_, end, !output)) {
          add(output ? TokenKind::kOutputEnd : TokenKind::kBlockEnd);
          at_ = next;
          line_starts_ = source_[next - 1] == '\n';
          return;
        }
      }
      if (at_ >= source_.size()) fail(fmt::format("the template ends within a tag: expected \"{}\"", end));
      const char c = source_[at_];
      if (const std::size_t next = behind_space(at_); next > at_) {
        at_ = next;
      } else if (is_decimal(c)) {
        read_number();
      } else if (is_name_byte(c)) {
        std::size_t next = at_;
        while (next < source_.size() && is_name_byte(source_[next])) ++next;
        add(TokenKind::kName, source_.substr(at_, next - at_));
        at_ = next;
      } else if (c == '\'' || c == '"') {
        read_string(c);
      } else {
        read_operator(open);
      }
    }
  }

  // The end of digits with single underscores between them.
  template <class IsDigit>
  std::size_t behind_digits(std::size_t at, IsDigit is_digit) const {
    while (at < source_.size() && (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                                             is_digit(source_[at + 1]))))
      ++at;
    return at;
  }

  void read_number() {
    const std::size_t begin = at_;
    const bool behind_dot = begin > 0 && source_[begin - 1] == '.';
    std::size_t end = behind_digits(begin, is_decimal);
    bool real = false;
    if (!behind_dot) {
      std::size_t next = end;
      if (next + 1 < source_.size() && source_[next] == '.' && is_decimal(source_[next + 1])) {
        next = behind_digits(next + 1, is_decimal);
        end = next;
        real = true;
      }
      if (next < source_.size() && (source_[next] == 'e' || source_[next] == 'E')) {
        std::size_t digits = next + 1;
        if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
        if (digits < source_.size() && is_decimal(source_[digits])) {
          end = behind_digits(digits, is_decimal);
          real = true;
        }
      }
    }
    int base = 10;
    if (!real && source_[begin] == '0' && begin + 1 < source_.size()) {
      const char mark = static_cast<char>(source_[begin + 1] | 0x20);
      const auto hex = [](char c) { return is_decimal(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
      const auto octal = [](char c) { return c >= '0' && c <= '7'; };
      const auto binary = [](char c) { return c == '0' || c == '1'; };
      if (mark == 'x') base = 16, end = behind_digits(begin + 2, hex);
      if (mark == 'o') base = 8, end = behind_digits(begin + 2, octal);
      if (mark == 'b') base = 2, end = behind_digits(begin + 2, binary);
    }
    const std::string text = source_.substr(begin, end - begin);
    if (real) {
      const auto value = read_real(text);
      if (!value) fail("this is no number");
      add(TokenKind::kReal, text).real = *value;
    } else {
      const bool zeros = base == 10 && text.size() > 1 && text[0] == '0' &&
                         text.find_first_not_of("0_") != std::string::npos;
      const auto value = read_integer(text, base);
      if (zeros || !value) fail("this is no integer of 64 bits");
      add(TokenKind::kInteger, text).integer = *value;
    }
    at_ = end;
  }

  void read_string(char quote) {
    std::string content;
    const std::size_t begin = at_;
    std::size_t at = begin + 1;
    for (;; ++at) {
      if (at >= source_.size()) fail("this string has no end");
      if (source_[at] == quote) break;
      if (source_[at] != '\\') {
        content += source_[at];
        continue;
      }
      if (++at >= source_.size()) fail("this string has no end");
      at = read_escape(at, content);
    }
    add(TokenKind::kString, std::move(content));
    at_ = at + 1;
  }

  // The escape whose letter stands at `at`; returns its last byte.
  std::size_t read_escape(std::size_t at, std::string& content) {
    const char c = source_[at];
    constexpr std::string_view kLetters = "ntrabfv\\'\"", kMeanings = "\n\t\r\a\b\f\v\\'\"";
    if (const std::size_t i = kLetters.find(c); i != std::string_view::npos) {
      content += kMeanings[i];
      return at;
    }
    if (c == '\n') return at;
    if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      append_code(content, source_.substr(at + 1, digits), digits, 16);
      return at + digits;
    }
    if (c >= '0' && c <= '7') {
      std::size_t end = at;
      while (end < source_.size() && end < at + 3 && source_[end] >= '0' && source_[end] <= '7') ++end;
      append_code(content, source_.substr(at, end - at), end - at, 8);
      return end - 1;
    }
    if (c == 'N') fail("characters by name (\\N{…}) are not supported: write \\uNNNN");
    content += '\\';
    content += c;
    return at;
  }

  void append_code(std::string& content, const std::string& digits, std::size_t count, int base) {
    const auto value = digits.size() == count && digits.find_first_of("_+- ") == std::string::npos
                           ? read_integer(digits, base)
                           : std::nullopt;
    if (!value || *value > 0x10FFFF || (*value >= 0xD800 && *value < 0xE000))
      fail("this string has an escape that is no character");
    append_utf8(content, static_cast<char32_t>(*value));
  }

  void read_operator(std::string& open) {
    static constexpr std::array<std::string_view, 25> kOperators = {
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
    const auto* found = std::find_if(kOperators.begin(), kOperators.end(),
                                     [&](std::string_view op) { return sees(op, at_); });
    if (found == kOperators.end())
      fail(fmt::format("unexpected character '{}'",
                       source_.substr(at_, decode_valid_utf8(std::string_view(source_).substr(at_)).length)));
    const char c = found->front();
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        fail(open.empty() ? fmt::format("unexpected '{}'", c)
                          : fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(*found));
    at_ += found->size();
  }

  const std::string source_;
  std::string_view name_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0, counted_ = 0;
  Place place_;
  bool line_starts_ = true;  // the last tag swallowed the end of its line
};

}  // namespace

std::vector<Token> cut_template(std::string_view source, std::string_view name) {
  if (const auto at = find_invalid_utf8(source))
    throw Error(ErrorKind::kInvalid, "a chat template is not UTF-8")
        .in(name, *at)
        .fix("download the file again");
  return Lexer(with_plain_lines(source), name).cut();
}

}  // namespace sluice::tokenizer::jinja
