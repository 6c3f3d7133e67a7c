// The budget against the resident set of the built program, as the system counts it, whatever is touched and
// when.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/scratch_directory.h"
#include "base/json/json.h"
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

// What is made up from a config of a tiny model, with other numbers in it.
std::string tiny_model(const testing::ScratchDirectory& scratch, const std::map<std::string, int>& numbers) {
  Json config = read_json_file(SLUICE_SOURCE_DIR "/tests/golden/models/qwen3_moe_a/config.json");
  for (const auto& [name, number] : numbers) config[name] = number;
  const std::string model = scratch.path() + "/model";
  EXPECT_EQ(program::run("synth " + scratch.write("config.json", config.dump()) + " -q -o " + model).code, 0);
  return model;
}

// The MiB that a command asks for, given 20 MiB.
Bytes stated_minimum(const std::string& command) {
  const program::Outcome outcome = program::run(command + " --memory 20MiB");
  std::smatch least;
  EXPECT_TRUE(std::regex_search(outcome.err, least, std::regex("at least ([0-9]+)MiB"))) << outcome.err;
  return least.empty() ? 0 : std::stoull(least[1]);
}

// Each sequence is a request with its sampler, its text and its counts.
TEST_F(ResidentSet, OfAThousandSequencesIsWithinTheLeastBudget) {
  const testing::ScratchDirectory scratch;
  const std::string model = tiny_model(scratch, {{"max_position_embeddings", 16}});
  std::vector<std::string> words = {"run", model, "-n", "4", "--ignore-eos", "--temp", "1", "--quiet"};
  for (int i = 0; i < 1000; ++i) {
    words.push_back("--tokens");
    words.push_back(std::to_string(i % 200 + 1) + ',' + std::to_string(i % 190 + 2) + ",3");
  }
  std::string command;
  for (const std::string& word : words) command += word + ' ';
  const Bytes mib = stated_minimum(command);
  words.insert(words.end(), {"--memory", std::to_string(mib) + "MiB"});
  EXPECT_LE(largest_resident_set(words), mib * kMiB);
}

// Page tables of the memory that suffices, and not of the budget that was too small, are a part of it.
TEST_F(ResidentSet, TheLeastBudgetThatIsStatedSuffices) {
  const testing::ScratchDirectory scratch;
  const std::string model = tiny_model(scratch, {{"num_attention_heads", 32},
                                                 {"num_key_value_heads", 32},
                                                 {"head_dim", 128},
                                                 {"max_position_embeddings", 131072}});
  for (const char* const tokens : {"20002", "60002"}) {
    const std::string command = "plan " + model + " --tokens " + tokens;
    const Bytes mib = stated_minimum(command);
    EXPECT_GT(mib, 900u);
    const program::Outcome outcome = program::run(command + " --memory " + std::to_string(mib) + "MiB");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
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
