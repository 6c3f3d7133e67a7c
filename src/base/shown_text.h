// Text of others (names in files, arguments, file content) as a message may show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// On one line and without what steers a terminal: control characters, those that break or turn a line, and
// what is not UTF-8 become \xNN. Of more than 500 characters the middle is left out, with "…" in its place.
// Shown text stays as it is when it is shown again.
std::string shown_text(std::string_view text);

// Printable ASCII alone, others as '?', cut behind `most` characters with "..." in their place.
std::string shown_ascii(std::string text, std::size_t most);

}  // namespace sluice
