// How wide what the program writes may be.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::app {

// Columns of the terminal behind a file descriptor. Elsewhere, such as behind a pipe, what the environment's
// COLUMNS says, else `elsewhere`. At least 40.
std::size_t terminal_columns(int fd, std::size_t elsewhere = 80);
// For tables of many columns, which files and pipes may have as wide as they are.
inline constexpr std::size_t kAnyColumns = 1000000;

// A line on standard output, broken between words where it is too long. What steers a terminal is shown as
// \xNN.
void print_wrapped(std::string_view line);

}  // namespace sluice::app
