// Runs the built program as a shell would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sluice::program {

struct Outcome {
  int code = -1;
  std::string out, err;
};

// `arguments` as written in a shell, with the two streams apart. A redirection in them wins.
inline Outcome run(const std::string& arguments) {
  std::string directory = ::testing::TempDir() + "/sluice-program-XXXXXX";
  EXPECT_NE(::mkdtemp(directory.data()), nullptr);
  const auto content = [&](const char* name) {
    std::ifstream file(directory + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string command =
      ">" + directory + "/out 2>" + directory + "/err '" SLUICE_PROGRAM "' " + arguments + " </dev/null";
  const int status = std::system(command.c_str());
  const Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content("/out"), content("/err")};
  std::filesystem::remove_all(directory);
  return outcome;
}

}  // namespace sluice::program
