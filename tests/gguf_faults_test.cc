// What `pack`, `unpack` and `synth` do with GGUF files where a disk is full or a file may not grow: one
// error, nothing half done that looks whole, and nothing lost that was there before.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/files/scratch_directory.h"
#include "base/machine/thread_pool.h"
#include "bundled_model.h"
#include "model/gguf_mix.h"
#include "model/synth/synth.h"
#include "model/synth/synth_gguf.h"
#include "own_disk.h"
#include "store/source/gguf_writer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// 300 pieces, as many as the model has rows: a store of the model has a tokenizer beside it.
void add_tokenizer(store::GgufPlan& file) {
  constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {kUnknown, kControl, kControl};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
  types.resize(tokens.size(), kByte);
  while (tokens.size() < 300) tokens.push_back(fmt::format("word{}", tokens.size()));
  types.resize(tokens.size(), kNormal);
  std::erase_if(file.keys, [](const auto& key) { return key.first.starts_with("tokenizer."); });
  file.keys.emplace_back("tokenizer.ggml.model", std::string("llama"));
  file.keys.emplace_back("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1.0f));
  file.keys.emplace_back("tokenizer.ggml.token_type", std::move(types));
  file.keys.emplace_back("tokenizer.ggml.tokens", std::move(tokens));
}

class GgufFaults : public ::testing::Test {
 protected:
  static constexpr int kFull = 1;  // exit code

  // A model of two experts, and a store of it.
  static void SetUpTestSuite() {
    directory_.emplace();
    std::ofstream(file("config.json"))
        << R"({"model_type": "qwen3_moe", "vocab_size": 300, "hidden_size": 64, "head_dim": 16,
               "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
               "moe_intermediate_size": 32, "num_experts": 2, "num_experts_per_tok": 1,
               "norm_topk_prob": true, "max_position_embeddings": 512})";
    model::GgufSynthPlan plan =
        model::plan_gguf_synth(model::plan_synth(file("config.json"), {}), model::GgufMix("q8_0"));
    add_tokenizer(plan.file);
    plan.layout = store::lay_out_gguf(plan.file);
    ThreadPool threads(2);
    model::write_gguf_synth(plan, file("m.gguf"), threads, [](Bytes) { return true; });
    const program::Outcome packed = program::run("pack " + file("m.gguf") + " -o " + file("whole") + " -q");
    ASSERT_EQ(packed.code, 0) << packed.err;
    ASSERT_TRUE(fs::exists(file("whole/sidecar/tokenizer.bin")));
    ASSERT_EQ(program::run("unpack " + file("whole") + " -o " + file("back") + " -q").code, 0);
    ASSERT_EQ(program::run(synth(file("s.gguf"))).code, 0);
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string file(const std::string& name) { return directory_->file(name); }
  static std::string synth(const std::string& to) {
    return fmt::format("synth {} --format q8_0 -o {} -q", file("config.json"), to);
  }

  // A command that makes `made`, what it makes on a disk with room, and whether it keeps what it has done
  // when it fails, to go on from there.
  struct Work {
    std::string command, made, whole;
    bool keeps = false;
  };
  static Work packing(const std::string& place) {
    return {fmt::format("pack {} -o {}/x -q", file("m.gguf"), place), place + "/x", file("whole"), true};
  }
  static std::vector<Work> works(const std::string& place) {
    return {packing(place),
            {fmt::format("unpack {} -o {}/x -q", file("whole"), place), place + "/x", file("back")},
            {synth(place + "/x"), place + "/x", file("s.gguf")}};
  }

  // One run of a command: what limited it, how it ended, what lay in its place then, what it said.
  struct Attempt {
    int step = 0, code = -1;
    std::vector<std::string> left;
    std::string err;
  };
  static constexpr std::string_view kMark = "==";
  // A line of shell that runs the command and tells of it: a marked line, then the command's messages.
  static std::string attempt(const Work& work, const std::string& place, const std::string& prefix = "") {
    return fmt::format(
        "said=$({}'{}' {} 2>&1); code=$?\n"
        "echo \"{} $step $code\" $(ls -A '{}')\n"
        "[ -z \"$said\" ] || echo \"$said\"\n",
        prefix, SLUICE_PROGRAM, work.command, kMark, place);
  }
  static std::vector<Attempt> attempts(const std::string& told) {
    std::vector<Attempt> all;
    std::istringstream lines(told);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(kMark)) {
        if (!all.empty()) all.back().err += line + "\n";
        continue;
      }
      std::istringstream words(line.substr(kMark.size()));
      Attempt& one = all.emplace_back();
      words >> one.step >> one.code;
      for (std::string name; words >> name;) one.left.push_back(name);
    }
    return all;
  }

  // Every attempt has ended well, or with one line that says what is wrong; nothing has the name of what
  // was to be made, and `other` is there. How many failed.
  static int expect_one_error_each(const Work& work, const std::vector<Attempt>& all,
                                   const ::testing::Matcher<std::string>& why) {
    int failed = 0;
    for (const Attempt& one : all) {
      SCOPED_TRACE(fmt::format("step {}: {}", one.step, one.err));
      const auto left = [&](std::string_view name) { return std::ranges::count(one.left, name) > 0; };
      EXPECT_TRUE(left("other"));
      EXPECT_EQ(left("x"), one.code == 0);
      const bool partial = left("x.partial") && work.keeps && one.code != 0;
      EXPECT_EQ(one.left.size(), (one.code == 0 ? 2u : 1u) + (partial ? 1 : 0))
          << ::testing::PrintToString(one.left);
      if (one.code == 0) {
        EXPECT_EQ(one.err, "");
        continue;
      }
      ++failed;
      EXPECT_EQ(one.code, kFull);
      EXPECT_THAT(one.err, StartsWith("sluice: "));
      EXPECT_EQ(std::ranges::count(one.err, '\n'), 1);
      EXPECT_THAT(one.err, why);
    }
    return failed;
  }

  // Runs the command on a disk with nothing but the file `other`, with 1, 2, 3 … for `step` in `limit`
  // ("size=$((step*4))k"), until it ends well. After a failure it runs once more with room enough, and has to
  // make what it makes elsewhere. Nothing where no disk can be mounted.
  static std::optional<std::vector<Attempt>> on_small_disks(const Work& work, const std::string& place,
                                                            const std::string& limit, int steps) {
    const std::string script = fmt::format(
        "echo earlier >'{0}/other'\n"
        "for step in $(seq 1 {1}); do\n"
        "  mount -o remount,{2} '{0}' 2>/dev/null || continue\n"
        "{3}"
        "  mount -o remount,size=64m,nr_inodes=1000 '{0}' || exit 1\n"
        "  [ $code = 0 ] || '{4}' {5} || exit 1\n"
        "  diff -r '{6}' '{7}' || exit 1\n"
        "  [ \"$(cat '{0}/other')\" = earlier ] || exit 1\n"
        "  [ $code != 0 ] || break\n"
        "  rm -rf '{7}'\n"
        "done\n",
        place, steps, limit, attempt(work, place), SLUICE_PROGRAM, work.command, work.whole, work.made);
    const auto outcome = program::run_on_own_disk(place, "size=64m,nr_inodes=1000", script);
    if (!outcome) return std::nullopt;
    EXPECT_EQ(outcome->code, 0) << outcome->out << outcome->err;
    std::vector<Attempt> all = attempts(outcome->out);
    EXPECT_TRUE(!all.empty() && all.back().code == 0) << outcome->out;
    return all;
  }

  static std::ptrdiff_t with_text(const std::vector<Attempt>& all, std::string_view text) {
    return std::ranges::count_if(all, [&](const Attempt& one) { return one.err.find(text) != one.err.npos; });
  }

  static inline std::optional<sluice::testing::ScratchDirectory> directory_;
};

// A page of 4 KiB more each time: what is asked for at first fails the check before anything is written, then
// one write after another fails.
TEST_F(GgufFaults, ADiskWithTooFewPagesIsOneError) {
  const std::string place = file("disk");
  for (const Work& work : works(place)) {
    SCOPED_TRACE(work.command);
    const auto all = on_small_disks(work, place, "size=$((step*4))k", 64);
    if (!all) GTEST_SKIP() << program::kNoDisks;
    EXPECT_GT(expect_one_error_each(work, *all, HasSubstr("space")), 8);
    EXPECT_GT(with_text(*all, "not enough free"), 4);
    EXPECT_GE(with_text(*all, "No space left on device"), work.keeps ? 4 : 0);
  }
}

// Space for bytes, and none for files.
TEST_F(GgufFaults, ADiskWithoutRoomForMoreFilesIsOneError) {
  const std::string place = file("disk");
  for (const Work& work : works(place)) {
    SCOPED_TRACE(work.command);
    const auto all = on_small_disks(work, place, "nr_inodes=$((step+1))", 24);
    if (!all) GTEST_SKIP() << program::kNoDisks;
    EXPECT_GE(expect_one_error_each(work, *all, HasSubstr("No space left on device")), 1);
    EXPECT_EQ(with_text(*all, "cannot be opened"), 0);  // no file was to be there
  }
}

// The disk grows by a page at a time, and what is packed stays: each run goes on where the last one stopped.
TEST_F(GgufFaults, APackOnADiskThatGrowsEndsWithTheSameBytes) {
  const std::string place = file("disk");
  const Work work = packing(place);
  const auto outcome =
      program::run_on_own_disk(place, "size=64k",
                               fmt::format("echo earlier >'{0}/other'\n"
                                           "for step in $(seq 16 64); do\n"
                                           "  mount -o remount,size=$((step*4))k '{0}' || exit 1\n"
                                           "{1}"
                                           "  [ $code != 0 ] || break\n"
                                           "done\n"
                                           "diff -r '{2}' '{3}'\n",
                                           place, attempt(work, place), work.whole, work.made));
  if (!outcome) GTEST_SKIP() << program::kNoDisks;
  EXPECT_EQ(outcome->code, 0) << outcome->out << outcome->err;
  const std::vector<Attempt> all = attempts(outcome->out);
  EXPECT_GT(expect_one_error_each(work, all, HasSubstr("space")), 4);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().code, 0);
}

// A limit of the size of files ends no run by a signal, which would leave what nobody removes.
TEST_F(GgufFaults, AFileThatMayNotGrowIsOneError) {
  const std::string place = file("limited");
  for (const Work& work : works(place)) {
    SCOPED_TRACE(work.command);
    fs::create_directory(place);
    std::ofstream(place + "/other") << "earlier";
    const std::string script = file("limits.sh");
    std::ofstream(script) << fmt::format(
        "for step in $(seq 0 9 300); do\n"
        "{}"
        "  [ $code = 0 ] || '{}' {} || exit 1\n"
        "  diff -r '{}' '{}' || exit 1\n"
        "  [ $code != 0 ] || break\n"
        "  rm -rf '{}'\n"
        "done\n",
        attempt(work, place, "ulimit -f $step; exec "), SLUICE_PROGRAM, work.command, work.whole, work.made,
        work.made);
    const program::Outcome outcome = program::run_command("sh '" + script + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    const std::vector<Attempt> all = attempts(outcome.out);
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().code, 0);
    EXPECT_GT(expect_one_error_each(work, all, HasSubstr("File too large")), 4);
    fs::remove_all(place);
  }
}

// A file of several batches, which are written while the next one is made.
TEST_F(GgufFaults, ALargeFileThatMayNotGrowLeavesNothing) {
  const std::string place = file("limited");
  fs::create_directory(place);
  std::ofstream(place + "/other") << "earlier";
  Json config = Json::parse(program::content_of(file("config.json")));
  config["vocab_size"] = 300000;  // 2 matrices of 19 MiB
  std::ofstream(file("large.json")) << config;
  const Work work{fmt::format("synth {} --format q8_0 -o {}/x -q", file("large.json"), place), place + "/x",
                  ""};
  const std::string script = file("limits.sh");
  constexpr int kMebibyte = 2048;  // in what `ulimit` counts
  std::ofstream(script) << fmt::format("for step in 0 {} {} {}; do\n{}done\n", kMebibyte, 17 * kMebibyte,
                                       33 * kMebibyte, attempt(work, place, "ulimit -f $step; exec "));
  const std::vector<Attempt> all = attempts(program::run_command("sh '" + script + "'").out);
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(expect_one_error_each(work, all, HasSubstr("File too large")), 4);
  EXPECT_EQ(program::run(work.command).code, 0);
  fs::remove_all(place);
}

// What has the name already stays as it is, on a full disk, too.
TEST_F(GgufFaults, WhatHasTheNameStays) {
  const std::string place = file("disk");
  for (const Work& work : works(place))
    for (const char* makes : {"mkdir", "echo earlier >"}) {
      SCOPED_TRACE(fmt::format("{}, after {}", work.command, makes));
      const auto outcome = program::run_on_own_disk(
          place, "size=8k",
          fmt::format("{} '{}'\n"
                      "cat /dev/zero >'{}/other' 2>/dev/null\n"
                      "step=0\n"
                      "{}"
                      "[ -d '{}' ] || [ \"$(cat '{}')\" = earlier ]\n",
                      makes, work.made, place, attempt(work, place), work.made, work.made));
      if (!outcome) GTEST_SKIP() << program::kNoDisks;
      EXPECT_EQ(outcome->code, 0) << outcome->out << outcome->err;
      const std::vector<Attempt> all = attempts(outcome->out);
      ASSERT_EQ(all.size(), 1u);
      EXPECT_NE(all[0].code, 0);
      EXPECT_THAT(all[0].err, HasSubstr("exists already"));
      EXPECT_EQ(all[0].left, (std::vector<std::string>{"other", "x"}));
    }
}

}  // namespace
}  // namespace sluice
