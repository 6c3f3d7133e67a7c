// Makes foreign text (names in files, arguments, file content) safe to show in a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// Returns the text on one line and without bytes that steer a terminal: control characters, characters that
// break or turn a line, and bytes that are not UTF-8 become \xNN. Escaped text does not change when it is
// escaped again.
std::string escaped_text(std::string_view text);

// As escaped_text(), of a text of several lines: line feeds and tabs stay.
std::string escaped_lines(std::string_view text);

// As escaped_text(); in a text of more than 500 characters "…" replaces the middle. Shown text does not
// change when it is shown again.
std::string shown_text(std::string_view text);

// Printable ASCII alone, others as '?', cut behind `most` characters with "..." in their place.
std::string shown_ascii(std::string text, std::size_t most);

}  // namespace sluice
