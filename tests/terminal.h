// Runs the built program on a terminal of its own.
#pragma once

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program.h"

namespace sluice::program {

// What the program writes, with both streams, to a terminal of that kind and width, and its exit code;
// nothing where terminals cannot be made.
inline std::optional<Outcome> run_on_terminal(const std::vector<std::string>& words,
                                              const char* kind = "xterm", unsigned short columns = 80) {
  winsize size = {24, columns, 0, 0};
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) return std::nullopt;
  if (child == 0) {
    ::alarm(120);
    ::setenv("TERM", kind, 1);
    become_program(words);
  }
  Outcome outcome;
  char bytes[4096];
  for (ssize_t count; (count = ::read(terminal, bytes, sizeof bytes)) > 0;)
    outcome.out.append(bytes, static_cast<std::size_t>(count));
  ::close(terminal);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// The lines that a terminal shows of text with "\r", "\n", "erase to the end of the line" and colours.
inline std::vector<std::string> lines_shown(const std::string& text) {
  std::vector<std::string> lines(1);
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string& line = lines.back();
    if (text[at] == '\n') {
      lines.emplace_back();
    } else if (text[at] == '\r') {
      column = 0;
    } else if (text[at] == '\x1b') {
      const std::size_t end = text.find_first_of("mK", at);
      if (end == std::string::npos) break;
      if (text[end] == 'K') line.resize(std::min(line.size(), column));
      at = end;
    } else {
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = text[at];
    }
  }
  return lines;
}

// What a terminal of that width shows in the end, and how often it had to break a line at its edge. It knows
// what LiveText uses beside the above: moves, a saved place, and "erase below".
struct Screen {
  std::vector<std::vector<std::string>> lines{1};  // characters, each one column wide
  std::size_t broken = 0;
  std::string text() const {
    std::string text;
    for (const std::vector<std::string>& line : lines) {
      for (const std::string& character : line) text += character;
      text += '\n';
    }
    return text;
  }
};

class ScreenOf {
 public:
  ScreenOf(const std::string& text, std::size_t columns) : columns_(columns) {
    for (std::size_t at = 0; at < text.size();) at = take(text, at);
  }
  const Screen& screen() const { return screen_; }

 private:
  // Returns where the next character, or sequence of control characters, begins.
  std::size_t take(const std::string& text, std::size_t at) {
    if (text[at] == '\x1b') return steer(text, at + 1);
    std::size_t end = at + 1;
    while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
    if (text[at] == '\n') {
      to_line(line_ + 1);
    } else if (text[at] == '\r') {
      column_ = 0;
    } else {
      put(text.substr(at, end - at));
    }
    return end;
  }
  std::size_t steer(const std::string& text, std::size_t at) {
    const bool numbered = at < text.size() && text[at] == '[';
    const std::size_t end = numbered ? text.find_first_not_of("0123456789;?", at + 1) : at;
    if (end >= text.size()) return text.size();
    const char what = text[end];
    std::vector<std::string>& line = screen_.lines[line_];
    if (numbered && (what == 'K' || what == 'J')) line.resize(std::min(line.size(), column_));
    if (numbered && what == 'J') screen_.lines.resize(line_ + 1);
    if (numbered && what == 'D') column_ -= std::stoul(text.substr(at + 1, end - at - 1));
    if (!numbered && what == 'D') to_line(line_ + 1);
    if (!numbered && what == 'M') to_line(line_ - 1);
    if (!numbered && what == '7') saved_ = {line_, column_};
    if (!numbered && what == '8') std::tie(line_, column_) = saved_;
    return end + 1;
  }
  void to_line(std::size_t line) {
    line_ = line;
    screen_.lines.resize(std::max(screen_.lines.size(), line + 1));
  }
  void put(const std::string& character) {
    if (column_ >= columns_) {
      to_line(line_ + 1);
      column_ = 0;
      ++screen_.broken;
    }
    std::vector<std::string>& line = screen_.lines[line_];
    line.resize(std::max(line.size(), column_ + 1), " ");
    line[column_++] = character;
  }

  std::size_t columns_, line_ = 0, column_ = 0;
  std::pair<std::size_t, std::size_t> saved_;
  Screen screen_;
};

}  // namespace sluice::program
