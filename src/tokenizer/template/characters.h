// Characters as Python's strings treat them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/marked_text.h"

namespace sluice::tokenizer::jinja {

bool is_space(char32_t c);       // str.isspace, \s of regular expressions
bool is_letter(char32_t c);      // str.isalpha
bool is_digit_char(char32_t c);  // str.isdigit
bool is_word_char(char32_t c);   // \w of regular expressions
bool is_printable(char32_t c);   // what repr() does not escape
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);

// Where white space at both ends of well-formed text ends and begins.
std::size_t space_at_start(std::string_view text);
std::size_t space_at_end(std::string_view text);  // offset of the first byte of it
std::string_view stripped(std::string_view text);

std::size_t count_chars(std::string_view text);
// The offset of each character, and the size of the text behind them.
std::vector<std::size_t> char_offsets(std::string_view text);

// Each part keeps its origin.
MarkedText upper_case(const MarkedText& text);
MarkedText lower_case(const MarkedText& text);
MarkedText capitalized(const MarkedText& text);  // the first character large, the others small
MarkedText title_case(const MarkedText& text);   // so each run of letters
// As the filter `title`: so each word, where words are divided by blanks, hyphens and opening brackets.
MarkedText title_words(const MarkedText& text);

// With &amp; &lt; &gt; &#39; and &#34; in place of these characters.
MarkedText html_escaped(const MarkedText& text);

}  // namespace sluice::tokenizer::jinja
