#include "engine/grammar/code_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sluice::engine {
namespace {

constexpr std::array<CodeRange, 5> kLengths = {
    {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, kLastCodePoint}}};

std::string utf8(std::uint32_t code) {
  std::string text;
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else {
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr std::array<unsigned, 4> kLead = {0, 0xC0, 0xE0, 0xF0};
    text += static_cast<char>(kLead[static_cast<std::size_t>(more)] | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  }
  return text;
}

std::string escape(std::uint32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", code);
  }
}

bool needs_escape(std::uint32_t code) { return code < 0x20 || code == '"' || code == '\\'; }

// All code points of a range whose UTF-8 has one length, cut where a byte's range would depend on those
// before it.
void add_utf8(GrammarBuilder& builder, const GrammarPart& part, CodeRange range) {
  for (int i = 1; i < 4; ++i) {
    const std::uint32_t tail = (1u << (6 * i)) - 1;
    if ((range.low & ~tail) == (range.high & ~tail)) break;
    if (range.high < 0x80) break;
    if ((range.low & tail) != 0) {
      add_utf8(builder, part, {range.low, range.low | tail});
      return add_utf8(builder, part, {(range.low | tail) + 1, range.high});
    }
    if ((range.high & tail) != tail) {
      add_utf8(builder, part, {range.low, (range.high & ~tail) - 1});
      return add_utf8(builder, part, {range.high & ~tail, range.high});
    }
  }
  const std::string low = utf8(range.low), high = utf8(range.high);
  GrammarState from = part.begin;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const GrammarState to = i + 1 == low.size() ? part.end : builder.add_state();
    builder.add_edge(from, {.kind = GrammarEdge::Kind::kBytes,
                            .low = static_cast<std::uint8_t>(low[i]),
                            .high = static_cast<std::uint8_t>(high[i]),
                            .to = to});
    from = to;
  }
}

}  // namespace

CodeRanges in_order(CodeRanges ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::low);
  CodeRanges result;
  for (const CodeRange& range : ranges) {
    if (!result.empty() && range.low <= result.back().high + 1)
      result.back().high = std::max(result.back().high, range.high);
    else
      result.push_back(range);
  }
  return result;
}

CodeRanges without(const CodeRanges& from, const CodeRanges& what) {
  CodeRanges result;
  for (CodeRange range : from) {
    bool left = true;
    for (const CodeRange& gone : what) {
      if (gone.high < range.low || gone.low > range.high) continue;
      if (gone.low > range.low) result.push_back({range.low, gone.low - 1});
      left = gone.high < range.high;
      if (!left) break;
      range.low = gone.high + 1;
    }
    if (left) result.push_back(range);
  }
  return result;
}

const CodeRanges& plain_characters() {
  static const CodeRanges ranges = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xD7FF}, {0xE000, kLastCodePoint}};
  return ranges;
}

GrammarPart string_character(GrammarBuilder& builder, const CodeRanges& ranges) {
  const GrammarPart part = builder.never();
  for (const CodeRange& range : ranges) {
    for (std::uint32_t code = range.low; code <= std::min<std::uint32_t>(range.high, '\\'); ++code) {
      if (!needs_escape(code)) continue;
      const GrammarPart escaped = builder.text(escape(code));
      builder.join(part.begin, escaped.begin);
      builder.join(escaped.end, part.end);
    }
  }
  for (const CodeRange& range : ranges)
    for (const CodeRange& plain : plain_characters())
      for (const CodeRange& length : kLengths) {
        const CodeRange both{std::max({range.low, plain.low, length.low}),
                             std::min({range.high, plain.high, length.high})};
        if (both.low <= both.high) add_utf8(builder, part, both);
      }
  return part;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (needs_escape(code))
      result += escape(code);
    else
      result += byte;
  }
  return result + '"';
}

std::optional<std::vector<std::uint32_t>> code_points(std::string_view text) {
  std::vector<std::uint32_t> codes;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || i + length > text.size() || lead > 0xF4) return std::nullopt;
    std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xC0) != 0x80) return std::nullopt;
      code = code << 6 | (byte & 0x3F);
    }
    codes.push_back(code);
    i += length;
  }
  return codes;
}

}  // namespace sluice::engine
