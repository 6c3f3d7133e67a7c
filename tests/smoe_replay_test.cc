// Without a device, a run with the router smoe and the replay of its trace replace the same experts and
// decide alike, line by line (SPEC I6). Through the built program.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::content_of;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;

class SmoeReplay : public PackedModelTest {
 protected:
  struct Case {
    std::string model, rules;  // for the router, and for slices, as both commands take them
    std::string cache = "lru", scope = "global", keep = "full";
    std::string memory_flags;
    std::size_t batch = 1;
    int seed = 1;
  };

  void expect_same(const Case& one) {
    SCOPED_TRACE(one.model + one.rules + " " + one.cache + " " + one.scope + one.memory_flags + " B " +
                 std::to_string(one.batch) + " seed " + std::to_string(one.seed));
    for (const char* name : {"a.trace", "ran", "replayed"}) fs::remove(file(name));
    const std::string seed = " --seed " + std::to_string(one.seed), keep = " --keep " + one.keep;
    request_ = one.model + prompts(one.batch, one.seed) + " -n 12 --temp 0.9 --ignore-eos" + seed +
               " --router smoe" + one.rules + " --cache " + one.cache + " --cache-scope " + one.scope +
               one.memory_flags + (one.keep == "full" ? "" : keep);
    const Json ran = run_json("trace " + request_ + " -o " + file("a.trace") + " --decisions " + file("ran"));
    std::string pools;
    if (ran.at("run").contains("pools"))
      for (const Json& slots : ran["run"]["pools"]["slots"])
        pools += (pools.empty() ? " --pools " : ",") + std::to_string(slots.get<int>());
    const Json replayed = run_json(
        "simulate --trace " + file("a.trace") + " --router smoe" + one.rules + " --cache " + one.cache +
        " --scope " + one.scope + keep + seed + pools + " --capacity " +
        std::to_string(ran["run"]["capacity"].get<std::uint64_t>()) + "B --decisions " + file("replayed"));
    const std::string log = content_of(file("ran"));
    EXPECT_EQ(log, content_of(file("replayed")));
    EXPECT_GT(log.size(), 2000u);
    EXPECT_EQ(ran.at("decisions"), replayed.at("decisions"));
    for (const char* const count : {"accesses", "hits", "misses"})
      EXPECT_EQ(ran.at("experts").at(count), replayed.at(count)) << count;
    routing_ = replayed.at("routing");
    EXPECT_TRUE(routing_.at("lossy").get<bool>());
    EXPECT_EQ(routing_.at("recorded_differs"), 0);
    replaced_ += routing_.at("substituted") > 0 ? 1 : 0;
    ++cases_;
  }

  // The last run once more, which with a capacity decides alike: it says what it has replaced.
  void expect_same_losses() {
    const Json ran = run_json("run " + request_).at("experts").at("routing");
    for (const char* const name :
         {"router", "tokens", "decode_tokens", "changed_tokens", "substituted", "alpha", "calibrated"})
      EXPECT_EQ(ran.at(name), routing_.at(name)) << name;
    EXPECT_DOUBLE_EQ(ran.at("mass_lost").get<double>(), routing_.at("mass_lost").get<double>());
  }

  std::string request_;  // the last run's
  Json routing_;         // its replay's
  int cases_ = 0, replaced_ = 0;
};

TEST_F(SmoeReplay, DecidesWhatTheRunDecided) {
  const std::vector<std::string> rules = {" --alpha 0.25", " --alpha 0.5 --merge off",
                                          " --alpha 0.8 --renorm mass", " --alpha 0.1"},
                                 caches = {"lru",      "score-window", "lfu",    "workload-window",
                                           "hybrimoe", "d-hybrimoe",   "marking"};
  std::size_t next = 0;
  for (const int seed : {1, 2, 3})
    for (const std::size_t batch : {std::size_t{1}, std::size_t{3}, std::size_t{16}})
      for (int i = 0; i < 2; ++i, ++next) {
        const bool by_layer = next / 2 % 2 == 1;
        expect_same({.model = kModel,
                     .rules = rules[next % rules.size()],
                     .cache = caches[next % caches.size()],
                     .scope = by_layer ? "layer" : "global",
                     .memory_flags = next % 3 == 0 ? (by_layer ? " --capacity 1MiB" : " --capacity 5MiB") +
                                                         (" --memory " + memory(64))
                                                   : " --memory " + memory(40),
                     .batch = batch,
                     .seed = seed});
        if (next % 3 == 0) expect_same_losses();
      }
  EXPECT_GE(replaced_, 12);
  std::cout << cases_ << " runs, " << replaced_ << " with experts replaced\n";
}

TEST_F(SmoeReplay, WithEveryKindOfStore) {
  for (const std::size_t batch : {std::size_t{1}, std::size_t{3}}) {
    expect_same({.model = store(),
                 .rules = " --alpha 0.5",
                 .cache = "zip-pools",
                 .memory_flags = " --memory " + memory(34),
                 .batch = batch});
    expect_same({.model = store(),
                 .rules = " --alpha 0.5",
                 .keep = "packed",
                 .memory_flags = " --memory " + memory(34),
                 .batch = batch});
    for (const std::string precision : {"dbsc", "high", "low"})
      expect_same({.model = sliced(),
                   .rules = " --alpha 0.5 --precision " + precision,
                   .cache = "slice-lru",
                   .keep = "full",
                   .memory_flags = " --memory " + memory(28),
                   .batch = batch,
                   .seed = 2});
  }
  EXPECT_EQ(replaced_, cases_);
}

// What is read ahead is no decision: such runs decide alike, too.
TEST_F(SmoeReplay, ReadAheadDecidesNothing) {
  expect_same(
      {.model = kModel, .rules = " --alpha 0.5", .memory_flags = " --capacity 10MiB --memory " + memory(64)});
  const std::string log = content_of(file("ran"));
  for (const std::string prefetch : {"stream", "smoe-partial", "all-next"}) {
    fs::remove(file("again"));
    const Json again =
        run_json("run " + request_ + " --prefetch " + prefetch + " --decisions " + file("again"));
    EXPECT_GT(again.at("experts").at("prefetch").at("used_bytes"), 0) << prefetch;
    EXPECT_EQ(content_of(file("again")), log) << prefetch;
  }
}

TEST_F(SmoeReplay, TablesSayThatItIsLossy) {
  fs::remove(file("b.trace"));
  ASSERT_EQ(run("trace " + kModel + " -p 'A fox' -n 20 --ignore-eos --temp 0 -q -o " + file("b.trace")).code,
            0);
  const std::string simulate = "simulate --trace " + file("b.trace");
  const Outcome table = run(simulate + " --cache lru,score-window --capacity 8,12 --router smoe --alpha 0.4");
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* const says : {"replaced %", "lost %", "score-window", "smoe is lossy: alpha 0.4"})
    EXPECT_NE(table.out.find(says), std::string::npos) << says << "\n" << table.out;
  // All caches of whole experts that do not know the future.
  const Json all = run_json(simulate + " --cache all --capacity 8 --router smoe");
  EXPECT_GT(all.at("results").size(), 6u);
  for (const Json& row : all.at("results")) EXPECT_NE(row.at("cache"), "belady");
  // Caches that go by scores need no router for that.
  const Json plain = run_json(simulate + " --cache score-window --capacity 8");
  EXPECT_FALSE(plain.contains("routing"));
  EXPECT_GT(plain.at("hits"), 0);
}

TEST_F(SmoeReplay, RefusesWhatCannotBe) {
  fs::remove(file("b.trace"));
  ASSERT_EQ(run("trace " + kModel + " -p 'A fox' -n 4 --ignore-eos --temp 0 -q -o " + file("b.trace")).code,
            0);
  const std::string own = "simulate --trace " + file("b.trace") + " --capacity 8 --cache ",
                    others = "simulate --trace " SLUICE_SOURCE_DIR
                             "/tests/data/routing/qwen.route.csv.zst --capacity 8 --cache ";
  const struct {
    std::string command;
    const char* says;
  } all[] = {
      {others + "lru --router smoe",
       "--router: this router looks at the scores of experts that were not chosen"},
      {others + "score-window", "--cache: this cache goes by the router's scores, and the trace has none"},
      {own + "belady --router smoe", "a cache that does not know the future"},
      {own + "lru --router cumsum", "exact or smoe"},
      {own + "lru --alpha 0.2", "--router smoe"},
      {own + "lru --router smoe --resident memory", "--device"},
      {own + "lru --router smoe --alpha -1", "at least 0"},
  };
  for (const auto& [command, says] : all) {
    const Outcome refused = run(command);
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_NE(refused.err.find(says), std::string::npos) << command << "\n" << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

}  // namespace
