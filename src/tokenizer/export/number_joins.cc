#include "tokenizer/export/number_joins.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tokenizer/stages/byte_level.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

// Parts of the characters of \p{N}, as UTF-8.
struct NumberParts {
  std::unordered_set<std::string> begins, ends;

  NumberParts() {
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (!is_numeric(c)) continue;
      std::string bytes;
      append_utf8(bytes, c);
      for (std::size_t length = 1; length < bytes.size(); ++length) {
        begins.insert(bytes.substr(0, length));
        ends.insert(bytes.substr(length));
      }
    }
  }
};

// The bytes that a token stands for; empty for one that no bytes become.
std::string bytes_of_token(std::string_view content) {
  std::string bytes;
  while (!content.empty()) {
    const CodePoint c = decode_utf8(content);
    const int byte = c.length == 0 ? -1 : byte_of_character(c.value);
    if (byte < 0) return {};
    bytes += static_cast<char>(byte);
    content.remove_prefix(c.length);
  }
  return bytes;
}

bool lies_across(std::string_view bytes, const NumberParts& parts) {
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const auto first = static_cast<std::size_t>(std::ranges::find_if_not(bytes, goes_on) - bytes.begin());
  if (first > 0 && !parts.ends.contains(std::string(bytes.substr(0, first)))) return false;
  std::size_t characters = first > 0 ? 1 : 0;
  bytes.remove_prefix(first);
  while (!bytes.empty()) {
    ++characters;
    const CodePoint c = decode_utf8(bytes);
    if (c.length == 0) return parts.begins.contains(std::string(bytes)) && characters > 1;
    if (!is_numeric(c.value)) return false;
    bytes.remove_prefix(c.length);
  }
  return characters > 1;
}

}  // namespace

bool joins_numbers(const TokenizerContents& contents) {
  const NumberParts parts;
  return std::ranges::any_of(contents.merges, [&](const Merges::Slot& slot) {
    const auto token = contents.vocabulary.content(slot.merge.id);
    return token && lies_across(bytes_of_token(*token), parts);
  });
}

}  // namespace sluice::tokenizer
