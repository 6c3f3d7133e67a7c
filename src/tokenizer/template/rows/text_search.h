// Finds and cuts strings, as Python's methods do. Parts keep their origins.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/text/marked_text.h"

namespace sluice::tokenizer::jinja {

// Offset in bytes of the first `wanted` at or behind `from`. Linear in the size of the text.
std::optional<std::size_t> find_text(std::string_view text, std::string_view wanted, std::size_t from = 0);

// At each `separator`, at most `most` times (from the end if `from_end`); negative: always.
enum class Side { kStart, kEnd };
std::vector<MarkedText> split_at(const MarkedText& text, std::string_view separator, std::int64_t most,
                                 Side side);
// At runs of white space, without empty parts.
std::vector<MarkedText> split_at_space(const MarkedText& text, std::int64_t most, Side side);
std::vector<MarkedText> split_lines(const MarkedText& text, bool keep_ends);
// With `replacement` for each `wanted`, at most `most` times; negative: always.
MarkedText replaced(const MarkedText& text, std::string_view wanted, const MarkedText& replacement,
                    std::int64_t most, std::size_t most_bytes);
// Without white space, or without the characters of `chars`, at the sides asked for.
MarkedText stripped_text(const MarkedText& text, bool at_start, bool at_end,
                         std::optional<std::string_view> chars);

}  // namespace sluice::tokenizer::jinja
