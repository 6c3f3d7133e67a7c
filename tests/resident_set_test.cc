// The budget against the resident set of the built program, as the system counts it, whatever is touched and
// when.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/scratch_directory.h"
#include "bundled_model.h"

namespace sluice {
namespace {

// The largest resident set of the program with these arguments, which must succeed.
Bytes largest_resident_set(const std::vector<std::string>& words) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    program::become_program(words);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << ::testing::PrintToString(words);
  return static_cast<Bytes>(usage.ru_maxrss) * kKiB;
}

class ResidentSet : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef SLUICE_SANITIZED
    GTEST_SKIP() << "sanitizers bring memory of their own";
#endif
  }
};

TEST_F(ResidentSet, OfARunIsWithinTheBudget) {
  const testing::ScratchDirectory scratch;
  const std::string store = scratch.path() + "/packed.sluice";
  ASSERT_EQ(program::run("pack " + program::kModel + " -o " + store + " --quiet").code, 0);
  for (const std::string& model : {program::kModel, store})
    for (const Bytes mib : {30, 34, 40})
      for (const char* tokens : {"3", "300"}) {
        SCOPED_TRACE(model + ", " + std::to_string(mib) + " MiB, " + tokens + " tokens");
        EXPECT_LE(largest_resident_set({"run", model, "-p", "Once upon a time there was a", "-n", tokens,
                                        "--ignore-eos", "--memory", std::to_string(mib) + "MiB", "--quiet"}),
                  mib * kMiB);
      }
}

TEST_F(ResidentSet, OfPackIsWithinTheMemoryThatItMayUse) {
  const testing::ScratchDirectory scratch;
  const std::string model = scratch.path() + "/model", store = scratch.path() + "/packed.sluice";
  const std::string config = SLUICE_SOURCE_DIR "/tests/data/configs/olmoe-1b-7b.config.json";
  ASSERT_EQ(program::run("synth " + config + " -o " + model + " --layers 1 --quiet").code, 0);
  for (const char* codec : {"native", "zstd"}) {
    EXPECT_LE(
        largest_resident_set({"pack", model, "-o", store, "--codec", codec, "--memory", "64MiB", "--quiet"}),
        64 * kMiB)
        << codec;
    std::filesystem::remove_all(store);
  }
}

}  // namespace
}  // namespace sluice
