// The budget against the kernel's own count: runs of the built program inside a memory cgroup.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kBudget = 32 * kMiB;
constexpr Bytes kSlack = 64 * kMiB;

const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/models/fable-moe-18m";

// A memory cgroup (v1 or v2) that lives as long as this object.
class Cgroup {
 public:
  static std::unique_ptr<Cgroup> make(Bytes limit) {
    static int number = 0;
    const std::string name = "sluice-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
    for (const bool v2 : {false, true}) {
      const fs::path path = fs::path(v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") / name;
      std::error_code error;
      if (!fs::exists(path.parent_path() / (v2 ? "cgroup.controllers" : "memory.limit_in_bytes"))) continue;
      if (v2 && !(std::ofstream(path.parent_path() / "cgroup.subtree_control") << "+memory").flush())
        continue;
      if (!fs::create_directory(path, error) || error) continue;
      auto group = std::unique_ptr<Cgroup>(new Cgroup(path, v2));
      if (!fs::exists(path / group->peak_file())) continue;
      std::ofstream(path / (v2 ? "memory.max" : "memory.limit_in_bytes")) << limit;
      return group;
    }
    return nullptr;
  }
  ~Cgroup() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  void join() const { std::ofstream(path_ / "cgroup.procs") << ::getpid() << std::flush; }
  Bytes peak() const { return read(peak_file()); }
  // How often the group's limit was reached.
  Bytes limit_hits() const {
    if (!v2_) return read("memory.failcnt");
    std::ifstream events(path_ / "memory.events");
    std::string name;
    Bytes value = 0, hits = 0;
    while (events >> name >> value)
      if (name == "max" || name == "oom" || name == "oom_kill") hits += value;
    return hits;
  }

 private:
  Cgroup(fs::path path, bool v2) : path_(std::move(path)), v2_(v2) {}
  const char* peak_file() const { return v2_ ? "memory.peak" : "memory.max_usage_in_bytes"; }
  Bytes read(const char* file) const {
    Bytes value = 0;
    std::ifstream(path_ / file) >> value;
    return value;
  }
  fs::path path_;
  bool v2_;
};

// Runs the program in the group; standard output goes to `out`. Returns its exit status.
int run_in(const Cgroup& group, const std::vector<std::string>& arguments, const fs::path& out) {
  const pid_t child = ::fork();
  if (child == 0) {
    group.join();
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) ::_exit(126);
    std::vector<char*> words;
    std::string program = SLUICE_PROGRAM;
    words.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string& word : copies) words.push_back(word.data());
    words.push_back(nullptr);
    ::execv(program.c_str(), words.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class CgroupBudgetTest : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef SLUICE_SANITIZED
    GTEST_SKIP() << "sanitizers bring memory of their own";
#endif
    if (Cgroup::make(kBudget) == nullptr)
      GTEST_SKIP() << "MEMORY CGROUPS CANNOT BE MADE HERE: the budget is not checked against the kernel";
  }

  // Runs one generation at 32 MiB and compares the accountant's peak with the kernel's.
  void expect_budget_kept(std::vector<std::string> arguments) {
    const testing::ScratchDirectory scratch;
    const fs::path out = fs::path(scratch.path()) / "out.json";
    // Pages of the program's and its libraries' files are charged to the group that touches them first, so
    // this run takes them before the compared runs.
    const fs::path before = fs::path(scratch.path()) / "before";
    const std::vector<std::string> short_run = {"run", kModel, "-p", "Once", "-n", "2", "--memory", "32MiB"};
    ASSERT_EQ(run_in(*Cgroup::make(kBudget + kSlack), short_run, before), 0);
    const auto idle = Cgroup::make(kBudget + kSlack);
    ASSERT_EQ(run_in(*idle, {"version"}, fs::path(scratch.path()) / "version"), 0);

    const auto group = Cgroup::make(kBudget + kSlack);
    arguments.insert(arguments.end(), {"--memory", "32MiB", "--ignore-eos", "--temp", "0", "--json"});
    ASSERT_EQ(run_in(*group, arguments, out), 0);
    EXPECT_EQ(group->limit_hits(), 0u);
    const Json memory = read_json_file(out).at("memory");
    const double accounted =
        memory.at("peak").get<double>() - memory.at("by_name").at("process").get<double>();
    const double kernel = static_cast<double>(group->peak()) - static_cast<double>(idle->peak());
    EXPECT_LE(memory.at("peak").get<Bytes>(), kBudget);
    EXPECT_LE(group->peak(), kBudget);
    EXPECT_NEAR(accounted, kernel, std::max(0.1 * kernel, 4.0 * kMiB))
        << "kernel " << group->peak() << " less " << idle->peak() << ", " << memory.dump();
  }
};

TEST_F(CgroupBudgetTest, TwoThousandTokensStayInside32MiB) {
  expect_budget_kept({"run", kModel, "-p", "Once upon a time", "-n", "2000"});
}

// The kernel may hold pages of a read a moment longer than the read, so this test asks only for the group's
// limit.
TEST_F(CgroupBudgetTest, ThroughThePageCacheThePagesAreDropped) {
  const testing::ScratchDirectory scratch;
  // A copy that no other process reads, on the disk, because pages that are not yet written are not dropped.
  const std::string model = scratch.path() + "/model";
  fs::copy(kModel, model, fs::copy_options::recursive);
  ::sync();
  for (const std::string io : {"buffered", "mmap"}) {
    const fs::path out = fs::path(scratch.path()) / (io + ".json");
    // Pages that other processes have read are charged to those: the file must be cold.
    InputFile::open(model + "/model.safetensors").drop_cache(0, fs::file_size(model + "/model.safetensors"));
    const auto group = Cgroup::make(kBudget + kSlack);
    ASSERT_EQ(run_in(*group,
                     {"run", model, "-p", "Once upon a time", "-n", "100", "--memory", "32MiB", "--temp", "0",
                      "--ignore-eos", "--json", "--io", io},
                     out),
              0);
    EXPECT_EQ(group->limit_hits(), 0u) << io;
    const Json result = read_json_file(out);
    EXPECT_LE(group->peak(), kBudget + 4 * kMiB) << io;
    EXPECT_LE(result.at("io").at("page_cache_bytes").get<Bytes>(), kMiB) << io;
  }
}

TEST_F(CgroupBudgetTest, APromptOf1500TokensStaysInside32MiB) {
  std::string tokens = "1";
  for (int i = 1; i < 1500; ++i) tokens += "," + std::to_string(i * 37 % 6000);
  expect_budget_kept({"run", kModel, "--tokens", tokens, "-n", "8"});
}

// Ten sequences of 1,000 tokens, one after the other, beside a device with a budget of its own, which is
// memory of this process, too.
TEST_F(CgroupBudgetTest, AHostAndADeviceKeepTheirBudgetsWhereverTheDensePartIs) {
  const testing::ScratchDirectory scratch;
  const std::string text = scratch.path() + "/text";
  std::string words(40000, ' ');
  std::ifstream(kModel + "/eval.txt").read(words.data(), static_cast<std::streamsize>(words.size()));
  std::ofstream(text) << words;
  struct Split {
    std::string device_memory, dense_on;
    Bytes device;
  };
  for (const Split& split : {Split{"16MiB", "device", 16 * kMiB}, Split{"8MiB", "host", 8 * kMiB}}) {
    SCOPED_TRACE(split.device_memory + ", " + split.dense_on);
    const Bytes host = 40 * kMiB, all = host + split.device + kMiB;
    const fs::path out = fs::path(scratch.path()) / (split.dense_on + ".json");
    const auto group = Cgroup::make(all);
    ASSERT_EQ(run_in(*group,
                     {"eval", kModel, "-f", text, "--ctx", "1000", "--memory", "40MiB", "--device",
                      "emulated:link=inf,compute=inf,latency=0us", "--device-memory", split.device_memory,
                      "--dense-on", split.dense_on, "--placement", "device", "--json"},
                     out),
              0);
    EXPECT_EQ(group->limit_hits(), 0u);
    EXPECT_LE(group->peak(), all);
    const Json result = read_json_file(out);
    EXPECT_GE(result.at("tokens").get<int>(), 9000) << result.dump();
    EXPECT_LE(result.at("memory").at("accounted").get<Bytes>(), host);
    const Json& device = result.at("device");
    EXPECT_EQ(device.at("dense_on"), split.dense_on);
    EXPECT_LE(device.at("memory").at("peak").get<Bytes>(), split.device);
    EXPECT_EQ(device.at("memory").at("by_name").at("dense").get<Bytes>() > 0, split.dense_on == "device");
  }
}

// A model of a large vocabulary and hardly anything else: what grows with sequences and vocabulary stands
// out.
std::string large_vocabulary(const testing::ScratchDirectory& scratch) {
  const std::string config = scratch.path() + "/config.json", model = scratch.path() + "/model";
  std::ofstream(config)
      << R"({"model_type": "olmoe", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
             "num_attention_heads": 2, "num_key_value_heads": 2, "num_experts": 8, "num_experts_per_tok": 2,
             "max_position_embeddings": 256, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
             "norm_topk_prob": false, "tie_word_embeddings": false, "hidden_act": "silu",
             "vocab_size": 151936, "eos_token_id": 151643, "clip_qkv": null})";
  EXPECT_EQ(program::run("synth " + config + " -o " + model + " --quiet").code, 0);
  return model;
}

std::vector<std::string> with_sequences(std::vector<std::string> arguments, int sequences) {
  for (int i = 0; i < sequences; ++i) {
    arguments.push_back("--tokens");
    arguments.push_back(std::to_string(i * 1009) + "," + std::to_string(151935 - i));
  }
  return arguments;
}

// Candidates of 64 sequences of 151,936 tokens, each with its own, would take 148 MiB.
TEST_F(CgroupBudgetTest, SixtyFourSampledSequencesOfALargeVocabularyStayInsideTheBudget) {
  const testing::ScratchDirectory scratch;
  const std::string model = large_vocabulary(scratch);
  const fs::path out = fs::path(scratch.path()) / "out.json";
  constexpr Bytes kRoom = 100 * kMiB;
  for (const std::vector<std::string>& sampling :
       {std::vector<std::string>{"--temp", "1"},
        {"--temp", "0.8", "--top-k", "40", "--top-p", "0.9", "--repeat-penalty", "1.2"},
        {"--temp", "0", "--repeat-penalty", "1.2"}}) {
    SCOPED_TRACE(::testing::PrintToString(sampling));
    std::vector<std::string> arguments = {"run",      model,    "-n",     "6", "--ignore-eos",
                                          "--memory", "100MiB", "--seed", "3", "--json"};
    arguments.insert(arguments.end(), sampling.begin(), sampling.end());
    const auto group = Cgroup::make(kRoom + kSlack);
    ASSERT_EQ(run_in(*group, with_sequences(arguments, 64), out), 0);
    EXPECT_EQ(group->limit_hits(), 0u);
    EXPECT_LE(group->peak(), kRoom);
    const Json result = read_json_file(out);
    EXPECT_EQ(result.at("sequences").size(), 64u);
    EXPECT_LE(result.at("memory").at("peak").get<Bytes>(), kRoom);
    EXPECT_GE(result.at("memory").at("peak").get<Bytes>() + 4 * kMiB, group->peak());
    std::cout << "the kernel saw " << group->peak() << ", reported " << result.at("memory").dump()
              << std::endl;
  }
  const std::vector<std::string> trace =
      with_sequences({"trace", model, "-n", "6", "--ignore-eos", "--memory", "100MiB", "--seed", "3",
                      "--temp", "1", "-o", scratch.path() + "/sampled.trace", "--quiet"},
                     64);
  const auto group = Cgroup::make(kRoom + kSlack);
  ASSERT_EQ(run_in(*group, trace, out), 0);
  EXPECT_EQ(group->limit_hits(), 0u);
  EXPECT_LE(group->peak(), kRoom);
}

// Room to draw from a vocabulary is planned once, however many sequences there are, and only where it is
// needed; the least budget that is named is enough.
TEST_F(CgroupBudgetTest, TheLeastBudgetOfASampledRunHasRoomForItsCandidates) {
  const testing::ScratchDirectory scratch;
  const std::string model = large_vocabulary(scratch);
  const auto least = [&](const std::string& sampling, int sequences) {
    std::string words = "run " + model + " -n 2 --ignore-eos --memory 1MiB" + sampling;
    for (const std::string& word : with_sequences({}, sequences)) words += " " + word;
    const program::Outcome outcome = program::run(words);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    const std::size_t at = outcome.err.find("give --memory ");
    EXPECT_NE(at, std::string::npos) << outcome.err;
    return std::stoul(outcome.err.substr(at + std::string_view("give --memory ").size()));
  };
  constexpr double kCandidates = 151936.0 * 16 / kMiB;
  for (const int sequences : {1, 20}) {
    const std::size_t greedy = least(" --temp 0", sequences), sampled = least(" --temp 1", sequences);
    EXPECT_NEAR(static_cast<double>(sampled - greedy), kCandidates, 1.5) << sequences;
    const auto group = Cgroup::make(sampled * kMiB);
    EXPECT_EQ(run_in(*group,
                     with_sequences({"run", model, "-n", "6", "--ignore-eos", "--temp", "1", "--memory",
                                     std::to_string(sampled) + "MiB", "--json"},
                                    sequences),
                     fs::path(scratch.path()) / "out.json"),
              0);
    EXPECT_EQ(group->limit_hits(), 0u);
  }
}

TEST_F(CgroupBudgetTest, TheDefaultBudgetIsTheGroupsAndNotTheMachines) {
  const testing::ScratchDirectory scratch;
  const fs::path out = fs::path(scratch.path()) / "out.json";
  const auto group = Cgroup::make(768 * kMiB);
  ASSERT_EQ(run_in(*group, {"run", kModel, "-p", "Once", "-n", "4", "--json"}, out), 0);
  EXPECT_LE(read_json_file(out).at("memory").at("budget").get<Bytes>(), (768 - 512) * kMiB);
}

}  // namespace
}  // namespace sluice
