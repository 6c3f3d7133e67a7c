// Runs the built program as a shell would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace sluice::program {

struct Outcome {
  int code = -1;
  std::string out, err;
};

// `words` as written in a shell, with the two streams separate. A redirection in them wins.
inline Outcome run_command(const std::string& words) {
  std::string directory = ::testing::TempDir() + "/sluice-program-XXXXXX";
  EXPECT_NE(::mkdtemp(directory.data()), nullptr);
  const auto content = [&](const char* name) {
    std::ifstream file(directory + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string command = ">" + directory + "/out 2>" + directory + "/err " + words + " </dev/null";
  const int status = std::system(command.c_str());
  const Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content("/out"), content("/err")};
  std::filesystem::remove_all(directory);
  return outcome;
}

// Runs the program in the same way.
inline Outcome run(const std::string& arguments) { return run_command("'" SLUICE_PROGRAM "' " + arguments); }

// In a child: the program takes its place, with these words.
[[noreturn]] inline void become_program(std::vector<std::string> words) {
  words.insert(words.begin(), SLUICE_PROGRAM);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  ::_exit(127);
}

// The program while it runs, started with these words, unchanged: its standard input stays open, its output
// can be read as it comes. It dies of SIGALRM if it does not end by itself.
class Running {
 public:
  explicit Running(std::vector<std::string> words) {
    int in[2], out[2];
    EXPECT_EQ(::pipe(in), 0);
    EXPECT_EQ(::pipe(out), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(out[1], STDERR_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      ::alarm(60);
      become_program(std::move(words));
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Running() {
    ::close(in_);
    ::close(out_);
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void write(const std::string& text) {
    EXPECT_EQ(::write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Output of both streams, at least one byte; empty at the end.
  std::string read() {
    char bytes[4096];
    const ssize_t count = ::read(out_, bytes, sizeof bytes);
    return std::string(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  // Sends Ctrl-C or SIGTERM as soon as the program handles it.
  void interrupt(int signal = SIGINT) {
    while (!minds(signal)) ::usleep(1000);
    EXPECT_EQ(::kill(child_, signal), 0);
  }
  // The rest of the output, and the exit code: -1 if a signal ended the program.
  Outcome wait() {
    Outcome outcome;
    for (std::string text = read(); !text.empty(); text = read()) outcome.out += text;
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

 private:
  // Whether a handler for the signal is installed, or the program has ended.
  bool minds(int signal) const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("SigCgt:"))
        return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
      if (line.starts_with("State:") && line.find('Z') != std::string::npos) return true;
    }
    return true;
  }

  pid_t child_ = -1;
  int in_ = -1, out_ = -1;
};

}  // namespace sluice::program
