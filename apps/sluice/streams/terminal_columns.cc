#include "streams/terminal_columns.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/shown_text.h"
#include "base/wrapped_text.h"
#include "streams/standard_output.h"

namespace sluice::app {

std::size_t terminal_columns(int fd, std::size_t elsewhere) {
  constexpr std::size_t kLeast = 40;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<std::size_t>(size.ws_col, kLeast);
  const char* const text = std::getenv("COLUMNS");
  std::size_t columns = 0;
  if (text == nullptr || std::from_chars(text, text + std::strlen(text), columns).ec != std::errc())
    return elsewhere;
  return std::max(columns, kLeast);
}

void print_wrapped(std::string_view line) {
  print_output("{}\n", wrapped_text(escaped_text(line), terminal_columns(STDOUT_FILENO)));
}

}  // namespace sluice::app
