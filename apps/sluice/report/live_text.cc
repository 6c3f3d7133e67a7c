#include "report/live_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <iostream>
#include <utility>

#include "streams/standard_output.h"

namespace sluice::app {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool takes_escapes() {
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

// The first characters of a line, each of one column.
std::string first_columns(std::string line, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < line.size(); ++at)
    if ((line[at] & 0xc0) != 0x80 && characters++ == columns) line.resize(at);
  return line;
}

// At once: the reader watches.
void put(const std::string& text) { std::cout << text << std::flush; }

}  // namespace

bool stdout_moves_cursor() { return ::isatty(STDOUT_FILENO) == 1 && takes_escapes(); }

bool colour_allowed() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && takes_escapes();
}

LiveText::LiveText(bool terminal, bool colour, std::function<std::string(std::size_t)> status)
    : terminal_(terminal),
      colour_(colour),
      whole_words_(!terminal && ::isatty(STDOUT_FILENO) == 1),
      status_(std::move(status)) {
  if (terminal_ || whole_words_) std::setlocale(LC_CTYPE, "C.UTF-8");  // for the widths of characters
}

LiveText::~LiveText() {
  try {
    finish();
  } catch (...) {
    // StandardOutput::finish() tells of it.
  }
}

void LiveText::write(const std::string& written, Tone tone) {
  const std::string text = output_text(written);
  if (!terminal_) {
    put(whole_words_ ? in_lines(text) : text);
    return;
  }
  const bool dim = colour_ && tone == Tone::kDim;
  put("\x1b[J" +
      (dim ? "\x1b[2m" + in_lines(text) + "\x1b[0m" : in_lines(text)));  // clears the old status line
  if (!status_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_at_ >= kRedraw || !text.empty()) {
    drawn_at_ = now;
    const std::size_t columns = terminal_columns() - 1;
    const std::string status = status_(columns);
    std::string lines, down, up;
    for (std::size_t begin = 0; begin <= status.size();) {
      const std::size_t end = std::min(status.find('\n', begin), status.size());
      lines += "\r\n" + first_columns(status.substr(begin, end - begin), columns);
      down +=
          "\x1b"
          "D";
      up +=
          "\x1b"
          "M";
      begin = end + 1;
    }
    // Moving down and up again makes room for the lines at the bottom of the screen and keeps the column.
    put(down + up +
        "\x1b"
        "7" +
        (colour_ ? "\x1b[2m" + lines + "\x1b[0m" : lines) +
        "\x1b"
        "8");
  }
}

std::string LiveText::in_lines(const std::string& text) {
  const std::size_t columns = std::max<std::size_t>(2, terminal_columns()) - 1;
  std::string lines;
  std::mbstate_t state{};
  for (std::size_t at = 0; at < text.size();) {
    wchar_t character = 0;
    std::size_t bytes = std::mbrtowc(&character, text.data() + at, text.size() - at, &state);
    std::size_t width = 0;
    if (bytes == 0 || bytes > text.size() - at) {
      bytes = 1;
      state = {};
    } else {
      width = static_cast<std::size_t>(std::max(0, ::wcwidth(character)));
    }
    put_character(text.substr(at, bytes), width, columns, lines);
    at += bytes;
  }
  return lines;
}

void LiveText::put_character(const std::string& character, std::size_t width, std::size_t columns,
                             std::string& lines) {
  const char first = character[0];
  const bool blank = first == ' ' || first == '\t', ends = first == '\n' || first == '\r';
  if (blank) width = first == '\t' ? 8 - column_ % 8 : 1;
  if (!ends && column_ + width > columns) {
    const bool moves = !blank && width < 2 && word_columns_ > 0 && word_columns_ < column_;
    if (whole_words_) {
      lines += (moves ? "" : word_) + "\r\n";
    } else {
      if (moves) lines += "\x1b[" + std::to_string(word_columns_) + "D\x1b[K";
      lines += "\r\n" + (moves ? word_ : "");
    }
    column_ = moves ? word_columns_ : 0;
    if (!moves) begin_word();
    if (blank) return;  // the end of the line stands for it
  }
  column_ = ends ? 0 : column_ + width;
  const bool goes_on = !blank && !ends && width <= 1;  // a line may end behind wide characters
  if (whole_words_ && !goes_on) lines += word_;
  if (!whole_words_ || !goes_on) lines += character;
  if (!goes_on) return begin_word();
  word_ += character;
  word_columns_ += width;
}

void LiveText::begin_word() {
  word_.clear();
  word_columns_ = 0;
}

void LiveText::finish() {
  if (std::exchange(finished_, true)) return;
  if (terminal_) put("\x1b[J");
  if (whole_words_) put(std::exchange(word_, ""));
}

}  // namespace sluice::app
