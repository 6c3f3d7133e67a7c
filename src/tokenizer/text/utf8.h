// UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::tokenizer {

struct CodePoint {
  char32_t value = 0;
  unsigned length = 0;  // bytes, 1..4; 0 if the text does not begin with a well-formed character
};

CodePoint decode_utf8(std::string_view text);
// As decode_utf8, for text that is known to be well formed. `text` must not be empty.
CodePoint decode_valid_utf8(std::string_view text);
// The last character of well-formed, non-empty text.
CodePoint decode_last_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t c);

// Offset in bytes of the first byte that does not begin a well-formed character.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Turns bytes into well-formed text, a piece at a time: each maximal part of an ill-formed sequence becomes
// one U+FFFD (Unicode 15, 3.9, "substitution of maximal subparts"; Rust's String::from_utf8_lossy). Holds at
// most three bytes.
class Utf8Lossy {
 public:
  void append(std::string_view bytes, std::string& out);
  void finish(std::string& out);  // the held bytes can no longer become a character

 private:
  std::string held_;
};

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace sluice::tokenizer
