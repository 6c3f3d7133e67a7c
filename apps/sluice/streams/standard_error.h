// Standard error: messages for people, and below them the one line that Progress draws again and again. Every
// message of the program goes through here. A write that fails is passed over: nowhere is left to tell of it.
// Thread-compatible: for the thread that runs the command.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace sluice::app {

// Writes the text as it is; a live line is removed before it.
void write_error(std::string_view text);

template <class... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  write_error(fmt::format(format, std::forward<Values>(values)...));
}

// "sluice: warning: TEXT", on a line of its own; the same text is written once, however often it is found.
void write_warning(std::string_view text);

template <class... Values>
void print_warning(fmt::format_string<Values...> format, Values&&... values) {
  write_warning(fmt::format(format, std::forward<Values>(values)...));
}

// The live line, of a terminal: drawn over the one before, removed, or left as it is with the cursor below.
// REQUIRES: no line ends in `line`, which fits the terminal.
void draw_live_line(std::string_view line);
void remove_live_line();
void end_live_line();

}  // namespace sluice::app
