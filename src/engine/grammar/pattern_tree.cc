#include "engine/grammar/pattern_tree.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kMostNesting = 64;
constexpr std::uint32_t kMostCount = 1'000'000;

const CodeRanges kDigits = {{'0', '9'}};
const CodeRanges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodeRanges kBlanks = {{'\t', '\r'}, {' ', ' '}};
// What counts as a blank in one of the languages that validate: no \S is any of these.
const CodeRanges kAllBlanks = {{0, ' '},         {0x7F, 0xA0},     {0x1680, 0x1680},
                               {0x180E, 0x180E}, {0x2000, 0x200F}, {0x2028, 0x202F},
                               {0x205F, 0x2060}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CodeRanges kAscii = {{' ', '~'}};
const CodeRanges kVisible = {{' ', 0x2027}, {0x202A, 0xD7FF}, {0xE000, kLastCodePoint}};  // what `.` is

class PatternReader {
 public:
  PatternReader(const GrammarBuilder& builder, std::vector<std::uint32_t> text)
      : builder_(builder), text_(std::move(text)) {}

  PatternNode read() {
    PatternNode whole = alternatives(0);
    if (at_ < text_.size()) fail("a closing bracket without its opening one");
    return whole;
  }

 private:
  using Kind = PatternNode::Kind;

  [[noreturn]] void fail(std::string_view found) const {
    throw Error(ErrorKind::kInvalid, "a pattern that answers cannot be bound to")
        .in(builder_.path())
        .expected("a regular expression without look-around, back references, \\b and \\p")
        .found(fmt::format("{} at character {}", found, at_ + 1));
  }
  bool more() const { return at_ < text_.size(); }
  std::uint32_t peek() const { return more() ? text_[at_] : UINT32_MAX; }
  std::uint32_t take() {
    if (!more()) fail("the end of the pattern");
    return text_[at_++];
  }
  bool take_if(std::uint32_t code) {
    if (peek() != code) return false;
    ++at_;
    return true;
  }

  PatternNode alternatives(std::size_t depth) {
    if (depth > kMostNesting) fail("groups nested deeper than 64");
    PatternNode choice{.kind = Kind::kOneOf};
    do {
      choice.children.push_back(sequence(depth));
    } while (take_if('|'));
    return choice;
  }

  PatternNode sequence(std::size_t depth) {
    PatternNode whole{.kind = Kind::kInOrder};
    while (more() && peek() != '|' && peek() != ')') {
      PatternNode atom = read_atom(depth);
      const bool anchor = atom.kind == Kind::kBegin || atom.kind == Kind::kEnd;
      if (std::optional<PatternNode> count = read_count()) {
        if (anchor) fail("a repeated anchor");
        count->children.push_back(std::move(atom));
        atom = std::move(*count);
      }
      whole.children.push_back(std::move(atom));
    }
    return whole;
  }

  std::optional<PatternNode> read_count() {
    PatternNode node{.kind = Kind::kRepeat};
    if (take_if('*')) {
    } else if (take_if('+')) {
      node.min = 1;
    } else if (take_if('?')) {
      node.max = 1;
    } else if (peek() == '{') {
      const std::size_t begin = at_++;
      const std::optional<std::uint32_t> min = read_number();
      if (!min) {  // a bracket that stands for itself
        at_ = begin;
        return std::nullopt;
      }
      node.min = node.max = *min;
      if (take_if(',')) {
        const std::optional<std::uint32_t> max = read_number();
        node.max = max.value_or(GrammarLoop::kNoLimit);
      }
      if (!take_if('}') || node.max < node.min) fail("a count that is none");
    } else {
      return std::nullopt;
    }
    take_if('?');  // lazy: the same texts
    return node;
  }

  std::optional<std::uint32_t> read_number() {
    std::optional<std::uint32_t> number;
    while (peek() >= '0' && peek() <= '9') {
      number = number.value_or(0) * 10 + (take() - '0');
      if (*number > kMostCount) fail("a count above a million");
    }
    return number;
  }

  PatternNode read_atom(std::size_t depth) {
    const std::uint32_t code = take();
    if (code == '(') return group(depth);
    if (code == '[') return one(read_class());
    if (code == '.') return one(kVisible);
    if (code == '^') return {.kind = Kind::kBegin};
    if (code == '$') return {.kind = Kind::kEnd};
    if (code == '\\') return one(escape());
    if (code == '*' || code == '+' || code == '?') fail("a repetition of nothing");
    return one({{code, code}});
  }
  static PatternNode one(CodeRanges ranges) { return {.kind = Kind::kClass, .ranges = std::move(ranges)}; }

  PatternNode group(std::size_t depth) {
    if (take_if('?')) {
      if (take_if('<')) {
        if (peek() == '=' || peek() == '!') fail("look-around");
        while (take() != '>') {
        }
      } else if (!take_if(':')) {
        fail("look-around");
      }
    }
    PatternNode inner = alternatives(depth + 1);
    if (!take_if(')')) fail("the end of the pattern within a group");
    return inner;
  }

  CodeRanges escape() {
    const std::uint32_t code = take();
    switch (code) {
      case 'd':
        return kDigits;
      case 'D':
        return without(kAscii, kDigits);
      case 'w':
        return kWord;
      case 'W':
        return without(kAscii, kWord);
      case 's':
        return kBlanks;
      case 'S':
        return without(kVisible, kAllBlanks);
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
        return hex_code(2);
      case 'u':
        if (!take_if('{')) return hex_code(4);
        return braced_code();
      case 'b':
      case 'B':
        fail("a word border");
      case 'p':
      case 'P':
        fail("a property of Unicode");
      default:
        break;
    }
    if (code >= '0' && code <= '9') fail("a back reference");
    if ((code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z')) fail("an unknown escape");
    return {{code, code}};
  }

  std::uint32_t hex_digit() {
    const std::uint32_t code = take();
    if (code >= '0' && code <= '9') return code - '0';
    if (code >= 'a' && code <= 'f') return code - 'a' + 10;
    if (code >= 'A' && code <= 'F') return code - 'A' + 10;
    fail("a code that is none");
  }
  CodeRanges checked(std::uint32_t code) const {
    if (code > kLastCodePoint || (code >= 0xD800 && code <= 0xDFFF)) fail("a code that is none");
    return {{code, code}};
  }
  CodeRanges hex_code(int digits) {
    std::uint32_t code = 0;
    for (int i = 0; i < digits; ++i) code = code * 16 + hex_digit();
    return checked(code);
  }
  CodeRanges braced_code() {
    std::uint32_t code = 0;
    do {
      code = code * 16 + hex_digit();
      if (code > kLastCodePoint) fail("a code that is none");
    } while (!take_if('}'));
    return checked(code);
  }

  CodeRanges read_class() {
    const bool opposite = take_if('^');
    CodeRanges ranges;
    while (!take_if(']')) {
      const CodeRanges first = class_item();
      const bool is_range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      const CodeRanges last = class_item();
      const auto single = [](const CodeRanges& r) {
        return r.size() == 1 && r.front().low == r.front().high;
      };
      if (!single(first) || !single(last) || first.front().low > last.front().low)
        fail("a range that is none");
      ranges.push_back({first.front().low, last.front().low});
    }
    ranges = in_order(std::move(ranges));
    return opposite ? without({{' ', 0xD7FF}, {0xE000, kLastCodePoint}}, ranges) : ranges;
  }
  CodeRanges class_item() {
    const std::uint32_t code = take();
    if (code != '\\') return {{code, code}};
    if (peek() == 'b') {
      ++at_;
      return {{'\b', '\b'}};
    }
    if (peek() == '-') {
      ++at_;
      return {{'-', '-'}};
    }
    return escape();
  }

  const GrammarBuilder& builder_;
  const std::vector<std::uint32_t> text_;
  std::size_t at_ = 0;
};

}  // namespace

PatternNode read_pattern(const GrammarBuilder& builder, std::vector<std::uint32_t> text) {
  return PatternReader(builder, std::move(text)).read();
}

}  // namespace sluice::engine
