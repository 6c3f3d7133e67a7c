// Formatted text at the end of a string. fmt::format_to into a string compiles the whole formatter anew in
// each file that calls it; here one file does.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace sluice {

void append_formatted(std::string& out, fmt::string_view format, fmt::format_args arguments);

// out += fmt::format(format, arguments...), without a string between.
template <class... Arguments>
void append_format(std::string& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  append_formatted(out, format, fmt::make_format_args(arguments...));
}

}  // namespace sluice
