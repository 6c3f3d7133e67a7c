#include "standard_error.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>

namespace sluice::app {
namespace {

bool live_line_drawn = false;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      struct pollfd output = {STDERR_FILENO, POLLOUT, 0};
      ::poll(&output, 1, -1);
    } else if (count == 0 || errno != EINTR) {
      return;
    }
  }
}

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
