#include "engine/grammar/json_parts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "engine/grammar/code_points.h"

namespace sluice::engine {
namespace {

constexpr int kMostBlanks = 20;                                                    // at the start of a line
constexpr std::uint32_t kWholeDigits = 16, kPartDigits = 10, kExponentDigits = 2;  // 32 with the signs
constexpr std::int64_t kMostOpen = 9'999'999'999'999'999;                          // a number of 16 digits

GrammarPart hex(GrammarBuilder& b) {
  const GrammarPart part = b.never();
  for (const auto& [low, high] : {std::pair('0', '9'), std::pair('a', 'f'), std::pair('A', 'F')})
    b.add_edge(part.begin, {.kind = GrammarEdge::Kind::kBytes,
                            .low = static_cast<std::uint8_t>(low),
                            .high = static_cast<std::uint8_t>(high),
                            .to = part.end});
  return part;
}

GrammarPart one_byte_of(GrammarBuilder& b, std::string_view bytes) {
  const GrammarPart part = b.never();
  for (const char byte : bytes) {
    const auto value = static_cast<std::uint8_t>(byte);
    b.add_edge(part.begin, {.kind = GrammarEdge::Kind::kBytes, .low = value, .high = value, .to = part.end});
  }
  return part;
}

// \u with four digits; surrogates in pairs.
GrammarPart unicode_escape(GrammarBuilder& b) {
  const GrammarPart plain =
      b.in_order({b.text("u"), one_byte_of(b, "0123456789abcefABCEF"), hex(b), hex(b), hex(b)});
  const GrammarPart below =
      b.in_order({b.text("u"), one_byte_of(b, "dD"), b.bytes('0', '7'), hex(b), hex(b)});
  const GrammarPart pair =
      b.in_order({b.text("u"), one_byte_of(b, "dD"), one_byte_of(b, "89abAB"), hex(b), hex(b), b.text("\\u"),
                  one_byte_of(b, "dD"), one_byte_of(b, "cdefCDEF"), hex(b), hex(b)});
  return b.one_of({plain, below, pair});
}

}  // namespace

GrammarRule JsonParts::space() {
  if (space_) return *space_;
  const GrammarPart part = builder_.never();
  const auto blank = [&](GrammarState from, std::string_view bytes, GrammarState to) {
    const GrammarPart read = one_byte_of(builder_, bytes);
    builder_.join(from, read.begin);
    builder_.join(read.end, to);
  };
  builder_.join(part.begin, part.end);
  blank(part.begin, " ", part.end);
  GrammarState line = builder_.add_state();
  blank(part.begin, "\n", line);
  const GrammarState second = builder_.add_state();
  blank(line, "\n", second);
  builder_.join(line, second);
  line = second;
  for (int i = 0; i < kMostBlanks; ++i) {
    builder_.join(line, part.end);
    const GrammarState next = builder_.add_state();
    blank(line, " \t", next);
    line = next;
  }
  builder_.join(line, part.end);
  space_ = builder_.rule_of(part);
  return *space_;
}

GrammarPart JsonParts::opening(char sign) {
  return builder_.in_order({builder_.text({&sign, 1}), builder_.call(space())});
}

GrammarPart JsonParts::closing(char sign) {
  return builder_.in_order({builder_.call(space()), builder_.text({&sign, 1})});
}

GrammarPart JsonParts::between(char sign) {
  return builder_.in_order({builder_.call(space()), builder_.text({&sign, 1}), builder_.call(space())});
}

GrammarRule JsonParts::value() {
  if (value_) return *value_;
  value_ = builder_.add_rule();
  const GrammarRule of_object = object(), of_array = array(), of_string = string(), of_number = number();
  builder_.define(
      *value_, builder_.one_of({builder_.call(of_object), builder_.call(of_array), builder_.call(of_string),
                                builder_.call(of_number), builder_.text("true"), builder_.text("false"),
                                builder_.text("null")}));
  return *value_;
}

GrammarRule JsonParts::object() {
  if (object_) return *object_;
  object_ = builder_.add_rule();
  const GrammarRule member = builder_.add_rule();
  const GrammarRule key = string(), of_value = value();
  builder_.define(member, builder_.in_order({builder_.call(key), between(':'), builder_.call(of_value)}));
  const GrammarPart more = builder_.repeated(builder_.in_order({between(','), builder_.call(member)}));
  const GrammarPart filled = builder_.in_order({builder_.call(member), more, closing('}')});
  builder_.define(*object_, builder_.in_order({opening('{'), builder_.one_of({filled, builder_.text("}")})}));
  return *object_;
}

GrammarRule JsonParts::array() {
  if (array_) return *array_;
  array_ = builder_.add_rule();
  const GrammarRule of_value = value();
  const GrammarPart more = builder_.repeated(builder_.in_order({between(','), builder_.call(of_value)}));
  const GrammarPart filled = builder_.in_order({builder_.call(of_value), more, closing(']')});
  builder_.define(*array_, builder_.in_order({opening('['), builder_.one_of({filled, builder_.text("]")})}));
  return *array_;
}

GrammarRule JsonParts::character() {
  if (character_) return *character_;
  const GrammarPart escaped =
      builder_.in_order({builder_.text("\\"),
                         builder_.one_of({one_byte_of(builder_, "\"\\/bfnrt"), unicode_escape(builder_)})});
  character_ = builder_.rule_of(builder_.one_of({string_character(builder_, plain_characters()), escaped}));
  return *character_;
}

GrammarRule JsonParts::string() {
  if (string_) return *string_;
  const GrammarPart escaped =
      builder_.in_order({builder_.text("\\"),
                         builder_.one_of({one_byte_of(builder_, "\"\\/bfnrt"), unicode_escape(builder_)})});
  const GrammarPart one = builder_.one_of({string_character(builder_, plain_characters()), escaped});
  string_ =
      builder_.rule_of(builder_.in_order({builder_.text("\""), builder_.repeated(one), builder_.text("\"")}));
  return *string_;
}

GrammarPart JsonParts::digits(std::uint32_t min, std::uint32_t max) {
  GrammarPart part = builder_.never();
  GrammarState at = part.begin;
  for (std::uint32_t i = 0; i < max; ++i) {
    if (i >= min) builder_.join(at, part.end);
    const GrammarPart digit = builder_.bytes('0', '9');
    builder_.join(at, digit.begin);
    at = digit.end;
  }
  builder_.join(at, part.end);
  return part;
}

GrammarPart JsonParts::whole_number() {
  return builder_.in_order(
      {builder_.perhaps(builder_.text("-")),
       builder_.one_of({builder_.text("0"),
                        builder_.in_order({builder_.bytes('1', '9'), digits(0, kWholeDigits - 1)})})});
}

GrammarRule JsonParts::integer() {
  if (!integer_) integer_ = builder_.rule_of(whole_number());
  return *integer_;
}

GrammarRule JsonParts::number() {
  if (number_) return *number_;
  const GrammarPart part = builder_.in_order({builder_.text("."), digits(1, kPartDigits)});
  const GrammarPart exponent =
      builder_.in_order({one_byte_of(builder_, "eE"), builder_.perhaps(one_byte_of(builder_, "+-")),
                         digits(1, kExponentDigits)});
  number_ = builder_.rule_of(
      builder_.in_order({whole_number(), builder_.perhaps(part), builder_.perhaps(exponent)}));
  return *number_;
}

// In numbers of one length, a state knows its place and whether the digits so far are those of a bound.
GrammarPart JsonParts::naturals(std::uint64_t low, std::uint64_t high) {
  const GrammarPart part = builder_.never();
  const std::string last = std::to_string(high);
  for (std::size_t length = std::to_string(low).size(); length <= last.size(); ++length) {
    const std::string a = std::to_string(low).size() == length ? std::to_string(low)
                          : length == 1                        ? "0"
                                                               : '1' + std::string(length - 1, '0');
    const std::string b = last.size() == length ? last : std::string(length, '9');
    std::array<GrammarState, 4> at{};  // by: at the low bound (1), at the high one (2)
    std::array<bool, 4> there{false, false, false, true};
    at[3] = builder_.add_state();
    builder_.join(part.begin, at[3]);
    for (std::size_t i = 0; i < length; ++i) {
      std::array<GrammarState, 4> next{};
      std::array<bool, 4> made{};
      for (std::size_t bounds = 0; bounds < 4; ++bounds) {
        if (!there[bounds]) continue;
        const char from = (bounds & 1) != 0 ? a[i] : '0', to = (bounds & 2) != 0 ? b[i] : '9';
        for (char digit = from; digit <= to; ++digit) {
          const std::size_t then =
              ((bounds & 1) != 0 && digit == a[i] ? 1u : 0u) | ((bounds & 2) != 0 && digit == b[i] ? 2u : 0u);
          if (!made[then]) next[then] = builder_.add_state();
          made[then] = true;
          const auto byte = static_cast<std::uint8_t>(digit);
          builder_.add_edge(at[bounds],
                            {.kind = GrammarEdge::Kind::kBytes, .low = byte, .high = byte, .to = next[then]});
        }
      }
      at = next;
      there = made;
    }
    for (std::size_t bounds = 0; bounds < 4; ++bounds)
      if (there[bounds]) builder_.join(at[bounds], part.end);
  }
  return part;
}

GrammarPart JsonParts::integers(std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min() + 1,
                         kMax = std::numeric_limits<std::int64_t>::max();
  const std::int64_t a = std::max(kMin, low.value_or(high && *high < -kMostOpen / 10 ? kMin : -kMostOpen));
  const std::int64_t b = high.value_or(low && *low > kMostOpen / 10 ? kMax : kMostOpen);
  std::vector<GrammarPart> parts;
  if (a > b) return builder_.never();
  if (b >= 0)
    parts.push_back(
        naturals(static_cast<std::uint64_t>(std::max<std::int64_t>(a, 0)), static_cast<std::uint64_t>(b)));
  if (a < 0)
    parts.push_back(
        builder_.in_order({builder_.text("-"), naturals(b < 0 ? static_cast<std::uint64_t>(-b) : 1,
                                                        static_cast<std::uint64_t>(-a))}));
  return builder_.one_of(parts);
}

}  // namespace sluice::engine
