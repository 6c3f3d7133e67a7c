// Somebody who types at a terminal on which the built program runs.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "program.h"

namespace sluice::program {

class Person {
 public:
  // Starts the program with these words and more of its environment. It dies of SIGALRM if it does not end.
  Person(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& environment,
         const char* kind = "xterm") {
    winsize size = {24, 80, 0, 0};
    child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    ::alarm(120);
    ::setenv("TERM", kind, 1);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    become_program(std::move(words));
  }
  ~Person() {
    ::close(terminal_);
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  Person(const Person&) = delete;
  Person& operator=(const Person&) = delete;

  bool has_terminal() const { return child_ > 0; }
  void resize(unsigned short columns) {
    const winsize size = {24, columns, 0, 0};
    EXPECT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }
  void type(const std::string& keys) {
    EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // Reads until the program has written `text` behind what was seen before; says what came until then.
  std::string see(const std::string& text) {
    std::string seen;
    for (;;) {
      const std::size_t at = unseen_.find(text);
      if (at != std::string::npos) {
        seen = unseen_.substr(0, at + text.size());
        unseen_.erase(0, seen.size());
        return seen;
      }
      if (!read()) break;
    }
    ADD_FAILURE() << "not seen: " << text << "\namong: " << unseen_;
    return seen;
  }
  // Types the keys, behind which the program ends.
  Outcome leave_by(const std::string& keys) {
    type(keys);
    return leave();
  }
  // The rest of what the program writes, and its exit code; -1 if a signal ended it.
  Outcome leave() {
    while (read()) {
    }
    Outcome outcome;
    outcome.out = std::move(unseen_);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

 private:
  // False at the program's end, and where nothing comes for long.
  bool read() {
    struct pollfd output = {terminal_, POLLIN, 0};
    if (::poll(&output, 1, 30000) <= 0) return false;
    char bytes[4096];
    const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
    if (count <= 0) return false;
    unseen_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  pid_t child_ = -1;
  int terminal_ = -1;
  std::string unseen_;
};

inline const std::string kCtrlC = "\x03", kCtrlD = "\x04";

}  // namespace sluice::program
