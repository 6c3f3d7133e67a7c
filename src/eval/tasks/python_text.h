// Strings with the semantics of Python's str methods, with which lm-evaluation-harness prepares its prompts.
// Text is well-formed UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::eval {

std::string_view strip(std::string_view text);   // str.strip()
std::string_view rstrip(std::string_view text);  // str.rstrip()
// str.capitalize(), one character for one: characters that Python maps to several (ß, İ, ligatures) or by
// position (Σ) get the simple mapping.
std::string capitalize(std::string_view text);
std::string replace(std::string_view text, std::string_view from, std::string_view to);  // str.replace()
std::size_t length(std::string_view text);                                               // len(): code points

}  // namespace sluice::eval
