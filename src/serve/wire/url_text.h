// Escapes of URLs.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace sluice::serve {

// "a%2Fb" is "a/b". What is no escape stays as it is.
inline std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const char* end = digits.data() + digits.size();
    if (text[at] == '%' && digits.size() == 2 && std::from_chars(digits.data(), end, byte, 16).ptr == end) {
      result += static_cast<char>(byte);
      at += 2;
    } else {
      result += text[at];
    }
  }
  return result;
}

}  // namespace sluice::serve
