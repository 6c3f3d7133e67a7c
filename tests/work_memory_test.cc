// What pack, unpack, verify, quantise and synth take of memory, as the system counts it, where experts are
// larger than that, or very many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/scratch_directory.h"
#include "bundled_model.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WorkMemory : public ::testing::Test {
 protected:
  // Two experts of three matrices of 64 MiB, and a store of them.
  static void SetUpTestSuite() {
#ifndef SLUICE_SANITIZED
    directory_.emplace();
    std::ofstream(file("config.json"))
        << R"({"model_type": "olmoe", "hidden_size": 4096, "intermediate_size": 8192, "num_hidden_layers": 1,
               "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 128, "num_experts": 2,
               "num_experts_per_tok": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-05,
               "rope_theta": 10000.0, "norm_topk_prob": false, "tie_word_embeddings": false,
               "hidden_act": "silu", "vocab_size": 256, "eos_token_id": 1, "clip_qkv": null})";
    ASSERT_EQ(program::run("synth " + file("config.json") + " -o " + file("model") + " --quiet").code, 0);
#endif
  }
  static void TearDownTestSuite() { directory_.reset(); }
  void SetUp() override {
#ifdef SLUICE_SANITIZED
    GTEST_SKIP() << "sanitizers bring memory of their own";
#endif
  }
  static std::string file(const std::string& name) { return directory_->file(name); }

  static std::string config(const std::string& name, int vocabulary, int hidden, int experts, int layers) {
    const std::string path = file(name + ".json");
    std::ofstream(path) << Json{{"model_type", "qwen3_moe"},   {"vocab_size", vocabulary},
                                {"hidden_size", hidden},       {"head_dim", 16},
                                {"num_hidden_layers", layers}, {"num_attention_heads", 2},
                                {"num_key_value_heads", 2},    {"moe_intermediate_size", 32},
                                {"num_experts", experts},      {"num_experts_per_tok", 2},
                                {"norm_topk_prob", true},      {"max_position_embeddings", 512}};
    return path;
  }
  // A GGUF file of that shape.
  static std::string gguf(const std::string& name, int vocabulary, int hidden, int experts, int layers) {
    const std::string path = file(name + ".gguf");
    EXPECT_EQ(program::run("synth " + config(name, vocabulary, hidden, experts, layers) + " -o " + path +
                           " --format q8_0 --quiet")
                  .code,
              0);
    return path;
  }

  // The peak of the program's resident memory.
  static Bytes peak_of(const std::vector<std::string>& words) {
    const pid_t child = ::fork();
    if (child == 0) program::become_program(words);
    int status = 0;
    struct rusage usage {};
    EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << ::testing::PrintToString(words);
    return static_cast<Bytes>(usage.ru_maxrss) * kKiB;
  }
  static void expect_peak(std::vector<std::string> words, const std::string& memory, Bytes most) {
    SCOPED_TRACE(::testing::PrintToString(words) + " " + memory);
    if (!memory.empty()) words.insert(words.end(), {"--memory", memory});
    words.push_back("--quiet");
    const Bytes peak = peak_of(words);
    std::cout << words[0] << " " << memory << ": " << peak / kKiB << " KiB\n";
    EXPECT_LE(peak, most);
  }

  static inline std::optional<testing::ScratchDirectory> directory_;
};

TEST_F(WorkMemory, IsKeptWhileExpertsAreLarger) {
  for (const char* threads : {"1", "8"}) {
    const std::string store = file(fmt::format("m{}.sluice", threads)),
                      sliced = file(fmt::format("s{}.sluice", threads)),
                      back = file(fmt::format("back{}", threads)),
                      copy = file(fmt::format("copy{}", threads));
    const std::vector<std::string> with = {"--threads", threads};
    const auto words = [&](std::vector<std::string> words) {
      words.insert(words.end(), with.begin(), with.end());
      return words;
    };
    expect_peak(words({"pack", file("model"), "-o", store}), "72MiB", 72 * kMiB);
    expect_peak(words({"pack", file("model"), "-o", sliced, "--slices", "8/4"}), "72MiB", 72 * kMiB);
    expect_peak(words({"verify", store, "--full"}), "64MiB", 64 * kMiB);
    expect_peak(words({"verify", store, "--full"}), "", 128 * kMiB);
    expect_peak(words({"unpack", store, "-o", back}), "64MiB", 64 * kMiB);
    expect_peak(words({"quantise", file("model"), "-o", copy}), "64MiB", 64 * kMiB);
    expect_peak(words({"quantise", file("model"), "-o", copy + "-again"}), "", 128 * kMiB);
    for (const std::string& made : {store, sliced, back, copy, copy + "-again"}) fs::remove_all(made);
  }
}

// A file with two matrices that are larger than the memory, and one with many that are smaller than what
// describes them.
TEST_F(WorkMemory, IsKeptWithGgufFiles) {
  struct Shape {
    const char* name;
    int vocabulary, hidden, experts, layers;
  };
  for (const Shape& shape : {Shape{"large", 36000, 2048, 2, 1}, Shape{"many", 300, 32, 128, 60}}) {
    const std::string model = gguf(shape.name, shape.vocabulary, shape.hidden, shape.experts, shape.layers);
    for (const char* threads : {"1", "8"}) {
      const std::string store = file("g.sluice"), back = file("back");
      expect_peak({"pack", model, "-o", store, "--threads", threads}, "64MiB", 64 * kMiB);
      expect_peak({"verify", store, "--full", "--threads", threads}, "64MiB", 64 * kMiB);
      expect_peak({"unpack", store, "-o", back, "--threads", threads}, "64MiB", 64 * kMiB);
      for (const std::string& made : {store, back}) fs::remove_all(made);
    }
    fs::remove(model);
  }
}

// Tables of very many experts take more than what is in progress: the least memory that a refusal names is
// enough for them, too.
TEST_F(WorkMemory, TooLittleForTheTablesOfManyExpertsIsRefusedWithWhatWouldDo) {
  const std::string model = gguf("many", 300, 32, 128, 120), store = file("g.sluice");
  const program::Outcome refused = program::run("pack " + model + " -o " + store + " --memory 64MiB");
  EXPECT_EQ(refused.code, 2);
  EXPECT_FALSE(fs::exists(store) || fs::exists(store + ".partial"));
  const std::size_t at = refused.err.find("expected ");
  ASSERT_NE(at, std::string::npos) << refused.err;
  const auto least = static_cast<Bytes>(std::stod(refused.err.substr(at + 9)));
  ASSERT_THAT(refused.err, HasSubstr(" MiB or more, found 64.00 MiB; give more"));
  expect_peak({"pack", model, "-o", store}, fmt::format("{}MiB", least), least * kMiB);
  expect_peak({"verify", store, "--full"}, "64MiB", 64 * kMiB);
  expect_peak({"unpack", store, "-o", file("back")}, "64MiB", 64 * kMiB);
  for (const std::string& made : {model, store, file("back")}) fs::remove_all(made);
}

// Two batches of 16 MiB, one that is made and one that is written, whatever the matrices.
TEST_F(WorkMemory, OfASyntheticGgufFileIsTwoBatches) {
  for (const char* threads : {"1", "8"}) {
    const std::string made = file("large.gguf");
    expect_peak(
        {"synth", config("large", 36000, 2048, 2, 1), "-o", made, "--format", "q8_0", "--threads", threads},
        "", 64 * kMiB);
    fs::remove(made);
  }
}

// One chunk of a matrix is coded as a whole; the least memory that a refusal names is enough, and is kept.
TEST_F(WorkMemory, TooLittleForOneChunkIsRefusedWithWhatWouldDo) {
  const std::string store = file("one.sluice"),
                    command = "pack " + file("model") + " -o " + store + " --chunks 1";
  const program::Outcome refused = program::run(command + " --memory 64MiB");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--memory: too little memory to pack with"));
  EXPECT_FALSE(fs::exists(store) || fs::exists(store + ".partial"));
  const std::size_t at = refused.err.find("expected ");
  ASSERT_NE(at, std::string::npos) << refused.err;
  const auto least = static_cast<Bytes>(std::stod(refused.err.substr(at + 9)));
  ASSERT_THAT(refused.err, HasSubstr(" MiB or more, found 64.00 MiB; give more"));
  expect_peak({"pack", file("model"), "-o", store, "--chunks", "1"}, fmt::format("{}MiB", least),
              least * kMiB);
  expect_peak({"verify", store, "--full"}, "64MiB", 64 * kMiB);
}

}  // namespace
}  // namespace sluice
