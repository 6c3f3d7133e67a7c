// The byte-level alphabet of GPT-2: every byte is written as one printable character below U+0144, so that a
// vocabulary of text covers all byte strings (bytes_to_unicode in openai/gpt-2, src/encoder.py).
#pragma once

#include <string>
#include <string_view>

namespace sluice::tokenizer {

// Appends one character for each byte of `bytes`.
void append_byte_level(std::string& out, std::string_view bytes);
// The byte that `c` stands for, or -1.
int byte_of_character(char32_t c);

// The pattern that GPT-2 cuts text with before its merges (the same file).
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace sluice::tokenizer
