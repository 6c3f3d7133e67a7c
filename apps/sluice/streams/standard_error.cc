#include "streams/standard_error.h"

#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include "streams/write_text.h"

namespace sluice::app {
namespace {

bool live_line_drawn = false;

// A failure has nowhere to be told.
void write_all(std::string_view text) { write_text(STDERR_FILENO, text); }

}  // namespace

void write_error(std::string_view text) {
  remove_live_line();
  write_all(text);
}

void write_warning(std::string_view text) {
  static std::set<std::string, std::less<>> written;
  if (written.emplace(text).second) print_error("sluice: warning: {}\n", text);
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
