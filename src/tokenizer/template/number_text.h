// Numbers as Python writes and reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::tokenizer::jinja {

// The shortest decimal that reads back as the number: "0.1", "1e+16", "1e-05", "inf", "nan".
std::string real_text(double value);
// int(text, base) and float(text): white space around and single underscores between digits are allowed.
// Empty if it is no number; an integer beyond 64 bits is none either.
std::optional<std::int64_t> read_integer(std::string_view text, int base = 10);
std::optional<double> read_real(std::string_view text);

}  // namespace sluice::tokenizer::jinja
