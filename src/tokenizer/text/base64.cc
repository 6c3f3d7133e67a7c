#include "tokenizer/text/base64.h"

#include <cstdint>

namespace sluice::tokenizer {
namespace {

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const std::size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const int digit = i < digits ? digit_of(text[at + i]) : 0;
      if (digit < 0) return std::nullopt;
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    if ((digits == 2 && (bits & 0xffff) != 0) || (digits == 3 && (bits & 0xff) != 0)) return std::nullopt;
    for (std::size_t i = 0; i + 1 < digits; ++i)
      out.push_back(static_cast<char>(bits >> (16 - 8 * i) & 0xff));
  }
  return out;
}

}  // namespace sluice::tokenizer
