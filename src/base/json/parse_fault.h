// What a parser of JSON objects to, in words.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// The library's message, "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error
// while parsing value - invalid literal; last read: 'H'", from the last dash on: its number, its place,
// which the caller knows better, and the rule of its grammar say nothing to a user.
inline std::string parse_fault(std::string_view message) {
  constexpr std::string_view kDash = " - ", kNumber = "] ";
  if (const std::size_t dash = message.find(kDash); dash != std::string_view::npos)
    message.remove_prefix(dash + kDash.size());
  else if (const std::size_t number = message.find(kNumber); number != std::string_view::npos)
    message.remove_prefix(number + kNumber.size());
  return std::string(message);
}

}  // namespace sluice
