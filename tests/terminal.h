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

}  // namespace sluice::program
