#include "streams/standard_error.h"

#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include "base/shown_text.h"
#include "base/wrapped_text.h"
#include "streams/terminal_columns.h"
#include "streams/write_text.h"

namespace sluice::app {
namespace {

bool live_line_drawn = false;

// A failure has nowhere to be told.
void write_all(std::string_view text) { write_text(STDERR_FILENO, text); }

}  // namespace

void write_report(std::string_view lines) {
  remove_live_line();
  write_all(lines);
}

void write_message(std::string_view text) {
  constexpr std::size_t kIndent = 2;  // for all lines but the first
  std::string shown = escaped_text(text);
  if (::isatty(STDERR_FILENO) == 1) shown = wrapped_text(shown, terminal_columns(STDERR_FILENO), 0, kIndent);
  write_report(shown + '\n');
}

void write_warning(std::string_view text) {
  static std::set<std::string, std::less<>> written;
  if (written.emplace(text).second) print_message("sluice: warning: {}", text);
}

void draw_live_line(std::string_view line) {
  write_all(fmt::format("\r{}\x1b[K", line));
  live_line_drawn = true;
}

void remove_live_line() {
  if (std::exchange(live_line_drawn, false)) write_all("\r\x1b[K");
}

void end_live_line() {
  if (std::exchange(live_line_drawn, false)) write_all("\n");
}

}  // namespace sluice::app
