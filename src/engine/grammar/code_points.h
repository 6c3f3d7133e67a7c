// Characters of a JSON string, by their code points.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar_builder.h"

namespace sluice::engine {

struct CodeRange {
  std::uint32_t low = 0, high = 0;
};
using CodeRanges = std::vector<CodeRange>;  // ascending, apart from each other

inline constexpr std::uint32_t kLastCodePoint = 0x10FFFF;

CodeRanges in_order(CodeRanges ranges);  // sorts and joins them
CodeRanges without(const CodeRanges& from, const CodeRanges& what);
// From U+0020 on, but quotes and backslashes: what stands in a string as it is.
const CodeRanges& plain_characters();

// One character of these as a string has it: in UTF-8; quotes, backslashes and controls by their escape.
GrammarPart string_character(GrammarBuilder& builder, const CodeRanges& ranges);

// A string with its quotes, escapes where they are needed alone.
std::string json_string(std::string_view text);

// The code points of UTF-8; empty if it is none.
std::optional<std::vector<std::uint32_t>> code_points(std::string_view text);

}  // namespace sluice::engine
