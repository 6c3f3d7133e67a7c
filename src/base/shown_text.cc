#include "base/shown_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {
namespace {

constexpr std::size_t kMostCharacters = 500;
constexpr std::size_t kKept = 248;  // at each end; an escape that straddles the cut stays whole

bool steers(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0) ||  // C0, DEL, C1
         (character >= 0x2028 && character <= 0x202e) ||                 // line ends, directions
         (character >= 0x2066 && character <= 0x2069);                   // directions
}

// Bytes of the character at the start of `text`; 0 if it is not UTF-8 or must not be shown.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if ((byte(0) >= 0x80 && byte(0) < 0xc2) || byte(0) > 0xf4 || length > text.size()) return 0;
  std::uint32_t character = length == 1 ? byte(0) : byte(0) & (0xff >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3f);
  }
  const bool overlong =
      (length == 3 && character < 0x800) || (length == 4 && (character < 0x10000 || character > 0x10ffff));
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  return overlong || surrogate || steers(character) ? 0 : length;
}

struct Escaped {
  std::string text;
  // Where each character of `text` starts; the characters of an escape start where the escape starts.
  std::vector<std::size_t> starts;
};

Escaped escaped(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  Escaped it;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_bytes(text.substr(at));
    it.starts.insert(it.starts.end(), length > 0 ? 1 : 4, it.text.size());
    if (length > 0) {
      it.text += text.substr(at, length);
    } else {
      const auto byte = static_cast<unsigned char>(text[at]);
      it.text.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
    }
    at += std::max<std::size_t>(1, length);
  }
  return it;
}

}  // namespace

std::string escaped_text(std::string_view text) { return escaped(text).text; }

std::string escaped_lines(std::string_view text) {
  std::string lines;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    lines += escaped_text(text.substr(begin, end - begin));
    if (end == text.size()) return lines;
    lines += text[end];
    begin = end + 1;
  }
}

std::string shown_text(std::string_view text) {
  const auto [shown, starts] = escaped(text);
  if (starts.size() <= kMostCharacters) return shown;
  return shown.substr(0, starts[kKept]) + "…" + shown.substr(starts[starts.size() - kKept]);
}

std::string shown_ascii(std::string text, std::size_t most) {
  const bool cut = text.size() > most;
  if (cut) text.resize(most);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return cut ? text + "..." : text;
}

}  // namespace sluice
