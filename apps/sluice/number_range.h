// Range checks for the numbers of flags, while the command line is read.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace sluice::app {

// For option->check(). Error(kUsage) that names the flag, for text that is no whole number from `least` to
// `most`.
CLI::Validator whole_number(const char* flag, std::uint64_t least, std::uint64_t most);

}  // namespace sluice::app
