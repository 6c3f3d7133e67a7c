// sluice_bench_disk leaves no file in its directory, however it ends.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "base/files/scratch_directory.h"

namespace {

namespace fs = std::filesystem;

// Whether a process has begun to write its temporary file, under any name.
bool is_writing(pid_t process) {
  std::error_code ignored;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), ignored), end; at != end;
       at.increment(ignored)) {
    struct stat info {};
    const std::string target = fs::read_symlink(at->path(), ignored).string();
    if (target.find("sluice_bench_disk.") != std::string::npos && ::stat(at->path().c_str(), &info) == 0 &&
        info.st_size > 0)
      return true;
  }
  return false;
}

TEST(DiskBench, LeavesNothingBehindWhenItIsKilled) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    const sluice::testing::ScratchDirectory scratch;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      ::execl(SLUICE_BENCH_DISK, SLUICE_BENCH_DISK, "--dir", scratch.path().c_str(), "--size", "1GiB",
              nullptr);
      ::_exit(127);
    }
    while (!is_writing(child) && ::waitpid(child, nullptr, WNOHANG) == 0) std::this_thread::yield();
    ASSERT_EQ(::kill(child, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_TRUE(fs::is_empty(scratch.path()));
  }
}

}  // namespace
