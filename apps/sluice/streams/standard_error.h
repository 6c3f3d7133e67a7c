// Standard error: messages for people, and below them the one line that Progress draws again and again. Every
// message of the program goes through here. A write that fails is passed over: nowhere is left to tell of it.
// Thread-compatible: for the thread that runs the command.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace sluice::app {

// Writes the lines of a report or a help, which fit, as they are; a live line is removed before them.
void write_report(std::string_view lines);

// Writes one message: an error, a warning, a note. Every one goes through here. What steers a terminal is
// shown as \xNN. A terminal narrower than the message gets it broken between words; elsewhere it is one line,
// which scripts can find.
void write_message(std::string_view text);

template <class... Values>
void print_message(fmt::format_string<Values...> format, Values&&... values) {
  write_message(fmt::format(format, std::forward<Values>(values)...));
}

// "sluice: warning: TEXT", a message of its own; the same text is written once, however often it is found.
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
