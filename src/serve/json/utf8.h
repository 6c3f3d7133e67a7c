// UTF-8 of texts that come from outside, and of pieces of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::serve {

// Where the text stops being UTF-8 (overlong forms and surrogates are none); npos if it does not.
std::size_t invalid_utf8(std::string_view text);
void append_utf8(std::string& text, std::uint32_t code_point);
// U+FFFD in the place of what is not UTF-8: one for each longest piece that begins a character.
std::string valid_utf8(std::string_view bytes);
std::size_t code_points(std::string_view text);  // counts bytes that begin a character

}  // namespace sluice::serve
