// Character properties as Hugging Face tokenizers (0.23) defines them. Its parts use different Unicode
// versions (regexes 16.0, normalisation 9.0, punctuation 8.0); utf8proc 2.8 has 15.0 and PCRE2 10.42 has
// 14.0. The tables here are the differences, found by comparing every code point with tokenizers 0.23.3.
#pragma once

#include <span>
#include <string_view>

namespace sluice::tokenizer {

struct CategoryRange {
  char32_t first, last;
  std::string_view category;  // "Lu", "Nd" …; one letter where no pattern needs more
};

// Characters assigned in Unicode 15 and 16: PCRE2 10.42 treats them as unassigned.
std::span<const CategoryRange> newer_than_pcre2();
struct CharRange {
  char32_t first, last;
};
// Han ideographs (script) that PCRE2 10.42 does not know.
std::span<const CharRange> newer_han();

// White_Space: Rust's char::is_whitespace, and \s of every regex in tokenizers.
bool is_white_space(char32_t c);
bool is_word(char32_t c);         // \w of Rust's regex: Alphabetic, M, Nd, Pc, Join_Control
bool is_numeric(char32_t c);      // Nd, Nl, No: Rust's char::is_numeric
bool is_punctuation(char32_t c);  // ASCII punctuation and P of Unicode 8
bool is_mark(char32_t c);         // M of Unicode 9: what StripAccents removes
char32_t to_lower(char32_t c);    // Rust's char::to_lowercase, except U+0130, which becomes two characters
// Whether Unicode 9 lacked the character, so that it neither decomposes nor composes nor moves.
bool is_normalization_inert(char32_t c);

}  // namespace sluice::tokenizer
