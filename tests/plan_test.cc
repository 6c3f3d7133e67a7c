// `plan` with the policies that the user chooses: it plans what `run` runs.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "packed_model.h"

namespace {

using sluice::Json;
using sluice::program::kModel;
using sluice::program::memory;
using sluice::program::Outcome;
using sluice::program::PackedModelTest;
using sluice::program::run;
using sluice::program::run_json;

class PlanTest : public PackedModelTest {};

// A run's answer and its prompt take some KiB, which a plan does not have.
constexpr double kAnswer = 64 * 1024;
// Bytes that a token reads with nothing in memory: layers, experts of a token, matrices.
constexpr double kTokenReads = 6.0 * 4 * 3 * 256 * 96 * 2;

void expect_same_memory(const Json& plan, const Json& ran) {
  const Json &planned = plan["by_name"], &used = ran["memory"]["by_name"];
  for (const char* name : {"dense", "kv", "activations"}) EXPECT_EQ(planned[name], used[name]) << name;
  EXPECT_NEAR(planned["tables"].get<double>(), used["tables"].get<double>(), kAnswer);
}

// The least budget that a refusal names, in MiB. It differs by a whole one where the process, which differs
// by some pages from start to start, is near its border.
double least_of(const std::string& command) {
  const std::string refusal = run(command + " --memory 1MiB").err, before = "at least ";
  const std::size_t at = refusal.find(before);
  EXPECT_NE(at, std::string::npos) << refusal;
  return at == std::string::npos ? 0 : std::stod(refusal.substr(at + before.size()));
}

TEST_F(PlanTest, SlicesArePlannedAsTheyRun) {
  const std::vector<std::string> both = {"both slices"}, msb = {"the MSB slice"},
                                 either = {"both slices", "the MSB slice"};
  for (const auto& [flags, kept] :
       {std::pair<std::string, std::vector<std::string>>{"--precision high", both},
        {"--precision low", msb},
        {"--precision high --cache slice-lru", either},
        {"--preset slicemoe", either},
        {"--preset slicemoe --batch 4", either}}) {
    SCOPED_TRACE(flags);
    const std::size_t batch = flags.find(" --batch");
    std::string prompts;
    for (int i = 0; i < (batch == std::string::npos ? 1 : 4); ++i) prompts += " --tokens 1,2,3";
    const std::string model = sliced() + " --threads 1 --chunk 16 ",
                      running = "run " + model + flags.substr(0, batch) + prompts + " -n 61 --temp 0",
                      planning = "plan " + model + flags + " --tokens 64 --temp 0",
                      budget = " --memory " + memory(40);
    const Json ran = run_json(running + budget), plan = run_json(planning + budget);
    expect_same_memory(plan, ran);
    EXPECT_NEAR(least_of(planning), least_of(running), 1);
    EXPECT_EQ(plan["policies"]["preset"], ran["preset"]);
    EXPECT_EQ(plan["policies"]["router"], ran["experts"]["routing"]["router"]);
    EXPECT_EQ(plan["policies"]["prefetch"], ran["experts"]["prefetch"]["policy"]);
    EXPECT_EQ(plan["policies"]["precision"], ran["experts"]["slices"]["precision"]);
    EXPECT_EQ(plan["policies"]["constraint"], ran["experts"]["slices"]["constraint"]);
    EXPECT_FALSE(plan.contains("predicted"));
    std::vector<std::string> parts;
    for (const Json& held : plan["held"]) {
      parts.push_back(held["parts"].get<std::string>());
      EXPECT_GT(held["experts"], 0);
      EXPECT_LE(held["experts"].get<double>() * held["bytes_each"].get<double>(),
                plan["by_name"]["experts"].get<double>());
    }
    EXPECT_EQ(parts, kept);
    const std::string table = run(planning + budget).out;
    EXPECT_NE(table.find("experts: " + kept[0] + ", "), std::string::npos) << table;
    EXPECT_NE(table.find("bytes per token   not predicted: "), std::string::npos) << table;
    EXPECT_NE(table.find("speed             not predicted"), std::string::npos) << table;
    const std::string report = run(running + budget).err;
    EXPECT_NE(report.find("bytes per token   not predicted: "), std::string::npos) << report;
    EXPECT_NE(report.find("measured  "), std::string::npos) << report;
  }
}

TEST_F(PlanTest, PoliciesThatTheUserChoosesArePlannedAsTheyRun) {
  for (const std::string flags :
       {"--cache lru", "--cache none", "--cache lfu --capacity 4MiB", "--preset z-basic-lru",
        "--preset z-accelerate", "--preset z-deepspeed", "--keep packed --cache lru",
        "--cache lru --router cache-prior --constraint hard", "--cache lru --prefetch none"}) {
    SCOPED_TRACE(flags);
    const std::string model =
        store() + " --threads 1 --chunk 16 --temp 0 --memory " + memory(36) + " " + flags;
    const Json ran = run_json("run " + model + " --tokens 1,2,3 -n 61 --ignore-eos"),
               plan = run_json("plan " + model + " --tokens 64");
    expect_same_memory(plan, ran);
    EXPECT_EQ(plan["policies"]["preset"], ran["preset"]);
    EXPECT_EQ(plan["policies"]["router"], ran["experts"]["routing"]["router"]);
    EXPECT_EQ(plan["policies"]["prefetch"], ran["experts"]["prefetch"]["policy"]);
    const auto planned = plan["predicted"]["bytes_per_token"].get<double>(),
               predicted = ran["predicted"]["bytes_per_token"].get<double>();
    EXPECT_NEAR(planned, predicted, 0.01 * kTokenReads);  // the process differs by some pages
    EXPECT_EQ(plan["predicted"]["routing"], "assumed");
    EXPECT_EQ(plan["held"].size(), 1u);
    const std::string table = run("plan " + model).out;
    EXPECT_NE(table.find("bytes per token   predicted "), std::string::npos) << table;
    EXPECT_EQ(table.find("less with the router cache-prior") != std::string::npos,
              flags.find("cache-prior") != std::string::npos)
        << table;
  }
}

// What is needed and what is read in vain stand apart, as in a run; and so does what nobody can foretell.
TEST_F(PlanTest, BytesReadInVainAreNamed) {
  for (const auto& [flags, in_vain] : {std::pair<std::string, std::string>{"--prefetch stream", " in vain ("},
                                       {"--prefetch all-next", ", in vain not predicted ("},
                                       {"--prefetch all-next --cache lru", ", in vain not predicted ("},
                                       {"--preset z-deepspeed", " in vain ("}}) {
    const std::string table = run("plan " + store() + " --memory " + memory(24) + " " + flags).out;
    const std::size_t row = table.find("bytes per token   predicted ");
    ASSERT_NE(row, std::string::npos) << flags << "\n" << table;
    EXPECT_NE(table.find(in_vain, row), std::string::npos) << flags << "\n" << table;
  }
  const std::string none = run("plan " + store() + " --memory " + memory(24) + " --prefetch none").out;
  EXPECT_EQ(none.find("in vain"), std::string::npos) << none;
  EXPECT_NE(none.find("bytes per token   predicted "), std::string::npos) << none;
  EXPECT_EQ(none.find(" 0 s"), std::string::npos) << none;
}

// What keeps nothing has nothing: every expert is read each time.
TEST_F(PlanTest, ACacheThatKeepsNothingIsPredictedToReadAll) {
  const Json plan = run_json("plan " + kModel + " --cache none --memory " + memory(60));
  EXPECT_EQ(plan["held"][0]["experts"], 0);
  EXPECT_GE(plan["predicted"]["bytes_per_token"].get<double>(), kTokenReads);
  EXPECT_LT(plan["predicted"]["bytes_per_token"].get<double>(), 1.1 * kTokenReads);  // whole blocks
}

// By default a plan is one of pools, also for a directory, whose runs keep whole experts.
TEST_F(PlanTest, WithoutAChoicePoolsArePlanned) {
  for (const std::string& model : {store(), kModel}) {
    const Json plan = run_json("plan " + model + " --memory " + memory(36));
    EXPECT_EQ(plan["policies"]["cache"], "zip-reuse") << model;
    EXPECT_TRUE(plan.contains("slots")) << model;
    EXPECT_FALSE(plan.contains("held")) << model;
  }
}

// The bundled model has 6 layers of 32 experts: 2 bytes for each pair, and some 250 for each expert.
TEST_F(PlanTest, WhatACacheLearnsIsInTheTables) {
  const auto tables = [](const std::string& cache) {
    const Json plan = run_json("plan " + kModel + " --memory " + memory(40) + " --cache " + cache);
    return plan["by_name"]["tables"].get<std::int64_t>();
  };
  const std::int64_t learned = tables("reuse") - tables("lru"), block = 4096;
  EXPECT_GE(learned, 6 * (32 * 32 * 2 + 32 * 200) - block);
  EXPECT_LE(learned, 6 * (32 * 32 * 2 + 32 * 300) + 2 * block);
}

TEST_F(PlanTest, AFlagThatCannotActIsRefusedAsByARun) {
  const auto expect_refused = [](const std::string& flags, const std::string& words) {
    const Outcome outcome = run("plan " + flags + " --memory " + memory(40));
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  expect_refused(sliced() + " --precision high --trace x",
                 "--trace: recorded routing says how often whole experts");
  expect_refused(sliced() + " --precision high --theta 0.3", "--theta: this flag has no effect here");
  expect_refused(store() + " --theta 0.3",
                 ", found --precision full, which is for experts that are not in slices; give");
  expect_refused(sliced(), "--precision");
  expect_refused(store() + " --precision low", "only experts in slices have two precisions");
  expect_refused(store() + " --cache slice-lru", "--cache: this cache holds slices");
}

}  // namespace
