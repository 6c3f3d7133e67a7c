// Text for people, in lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// Characters of `text`, each of them one column.
std::size_t text_columns(std::string_view text);

// The words of `text` in lines of at most `columns` columns, broken at blanks and never inside a word: a word
// that is longer stands alone. A number and the unit behind it (1.5 MiB, 12 µs) count as one word, and so do
// a capital letter and its number (E 4), and a flag and the name of its value (N in capitals). The first line
// begins in column `at`, behind what the caller has written; each other begins with `indent` blanks. A line
// break in `text` stays one; several blanks stay several between words of one line, since a path may
// have them. No line ends with a blank.
std::string wrapped_text(std::string_view text, std::size_t columns, std::size_t at = 0,
                         std::size_t indent = 0);

// A list with a blank behind each comma, where a line may be broken.
std::string breakable(std::string_view list);

// "  NAME              TEXT\n": a row of a report. `text` begins in column 20 on every line, and in column 6
// below the name where the terminal is narrower than 60 columns.
std::string report_row(std::string_view name, std::string_view text, std::size_t columns);

}  // namespace sluice
