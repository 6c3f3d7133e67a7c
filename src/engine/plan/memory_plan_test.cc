#include "engine/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/error.h"
#include "base/machine/system_memory.h"

namespace sluice::engine {
namespace {

MemoryNeeds some_needs() {
  MemoryNeeds needs;
  needs.process = 6 * kMiB;
  needs.dense = 8 * kMiB;
  needs.kv = 2 * kMiB;
  needs.tables = kMiB;
  needs.load_staging = 3 * kMiB;
  needs.least_staging = 400 * kKiB;
  needs.staging_per_expert = 400 * kKiB;
  needs.expert_bytes = 144 * kKiB;
  needs.experts = 192;
  needs.top_k = 4;
  needs.most_chunk = 256;
  needs.activations = [](const void*, std::size_t chunk) { return Bytes{chunk} * 10 * kKiB; };
  return needs;
}

Bytes total(const MemoryPlan& plan) {
  return plan.process + plan.dense + plan.kv + plan.tables + plan.serve + plan.activations + plan.staging +
         plan.experts;
}

// A byte more than there is must not read "at most 23.54 GiB, found 23.54 GiB".
TEST(MemoryPlanTest, ABudgetAHairTooLargeIsToldFromTheMostThatMayBe) {
  const MemoryLimits limits = read_memory_limits();
  const Bytes most = std::min(limits.machine_total, limits.cgroup_limit.value_or(limits.machine_total));
  EXPECT_EQ(checked_budget(most), most);
  try {
    checked_budget(most + 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBudget);
    EXPECT_NE(error.expected_text(), "at most " + error.found_text());
    EXPECT_NE(error.found_text().find(std::to_string(most + 1)), std::string::npos) << error.what();
  }
}

TEST(MemoryPlanTest, TooSmallABudgetNamesTheLeastThatWouldDo) {
  Bytes minimum = 0;
  try {
    plan_memory(10 * kMiB, some_needs());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBudget);
    EXPECT_NE(std::string(error.what()).find("dense 8.00 MiB"), std::string::npos) << error.what();
    // Loading needs more than running here: kv and activations come after it.
    minimum = 6 * kMiB + 8 * kMiB + kMiB + 3 * kMiB;
    // What is asked for holds at the next start, too, and both places say the same.
    const std::string what = error.what();
    EXPECT_NE(what.find("at least 19MiB (process 6.00 MiB"), std::string::npos) << what;
    EXPECT_NE(what.find("and 1.00 MiB to spare, as the process takes more at some starts"), std::string::npos)
        << what;
    EXPECT_NE(what.find("give --memory 19MiB or more"), std::string::npos) << what;
  }
  EXPECT_THROW(plan_memory(minimum - 1, some_needs()), Error);
  EXPECT_EQ(plan_memory(minimum, some_needs()).minimum, minimum);
  MemoryNeeds grown = some_needs();
  grown.process += kStartMargin;
  EXPECT_EQ(plan_memory(plan_memory(minimum, some_needs()).stated, grown).budget, 19 * kMiB);
}

// A step decodes a token of every sequence: fewer than that would not run.
TEST(MemoryPlanTest, AChunkHasATokenOfEverySequenceAtTheLeastBudget) {
  MemoryNeeds needs = some_needs();
  needs.load_staging = 0;
  needs.sequences = 64;
  const MemoryPlan roomy = plan_memory(kGiB, needs);
  EXPECT_GE(plan_memory(roomy.minimum, needs).chunk, 64u);
  EXPECT_THROW(plan_memory(roomy.minimum - 1, needs), Error);
  needs.sequences = 1;
  EXPECT_EQ(roomy.minimum - plan_memory(kGiB, needs).minimum, 48 * 10 * kKiB);
}

TEST(MemoryPlanTest, NeverPlansMoreThanTheBudgetAndNeverMoreThanAllExperts) {
  const unsigned seed = 97;
  std::mt19937_64 random(seed);
  const MemoryNeeds needs = some_needs();
  const Bytes minimum = plan_memory(kGiB, needs).minimum;
  for (int round = 0; round < 2000; ++round) {
    const Bytes budget = minimum + random() % (80 * kMiB);
    const MemoryPlan plan = plan_memory(budget, needs);
    EXPECT_LE(total(plan), budget) << "seed " << seed;
    EXPECT_LE(plan.experts, needs.experts * needs.expert_bytes);
    EXPECT_GE(plan.staging, needs.least_staging);
    EXPECT_GE(plan.chunk, 1u);
  }
}

// Also while the model loads, when a server listens already.
TEST(MemoryPlanTest, AServersMemoryIsKeptFree) {
  for (const Bytes load_staging : {Bytes{0}, 100 * kMiB}) {
    MemoryNeeds needs = some_needs();
    needs.load_staging = load_staging;
    const MemoryPlan before = plan_memory(kGiB, needs);
    EXPECT_EQ(before.serve, 0u);
    needs.serve = 4 * kMiB;
    const MemoryPlan plan = plan_memory(kGiB, needs);
    EXPECT_EQ(plan.serve, 4 * kMiB);
    EXPECT_EQ(plan.minimum, before.minimum + 4 * kMiB);
    EXPECT_LE(total(plan_memory(plan.minimum, needs)), plan.minimum);
  }
}

TEST(MemoryPlanTest, MoreMemoryNeverMeansFewerExperts) {
  const MemoryNeeds needs = some_needs();
  const MemoryPlan small = plan_memory(30 * kMiB, needs), large = plan_memory(kGiB, needs);
  EXPECT_LE(small.experts, large.experts);
  EXPECT_EQ(large.experts, needs.experts * needs.expert_bytes);
  EXPECT_EQ(large.chunk, needs.most_chunk);
}

TEST(MemoryPlanTest, TheChunkIsAllThatFitsButForRounding) {
  const unsigned seed = 98;
  std::mt19937_64 random(seed);
  MemoryNeeds needs = some_needs();
  const Bytes minimum = plan_memory(kGiB, needs).minimum;
  for (int round = 0; round < 2000; ++round) {
    needs.most_chunk = 16 + random() % 8000;
    const Bytes budget = minimum + random() % (120 * kMiB);
    const MemoryPlan plan = plan_memory(budget, needs);
    const Bytes left = budget - needs.process - needs.dense - needs.kv - needs.tables - needs.least_staging;
    const std::size_t fits = std::min<std::size_t>(needs.most_chunk, left / 4 / (10 * kKiB));
    EXPECT_LE(plan.chunk, std::max<std::size_t>(fits, 16)) << "seed " << seed;
    EXPECT_GE(plan.chunk, fits * 4 / 5) << "seed " << seed;
    if (fits == needs.most_chunk) {
      EXPECT_EQ(plan.chunk, fits) << "seed " << seed;
    }
  }
}

// What the process takes differs by a part of a MiB from start to start.
TEST(MemoryPlanTest, TheSameChunkAtEveryStartWhereItIsAskedFor) {
  const unsigned seed = 99;
  std::mt19937_64 random(seed);
  MemoryNeeds needs = some_needs();
  needs.most_chunk = 4000;
  std::size_t differ = 0, larger = 0;
  for (int round = 0; round < 2000; ++round) {
    needs.process = 14 * kMiB + random() % (5 * kMiB);
    needs.tables = kMiB + random() % (100 * kKiB);
    MemoryNeeds again = needs;
    again.process += random() % kMiB;
    again.tables += random() % (100 * kKiB);
    const Bytes budget = 40 * kMiB + random() % (200 * kMiB);
    differ += plan_memory(budget, needs).chunk != plan_memory(budget, again).chunk ? 1 : 0;
    needs.same_chunk = again.same_chunk = true;
    const MemoryPlan plan = plan_memory(budget, needs);
    ASSERT_EQ(plan.chunk, plan_memory(budget, again).chunk) << "seed " << seed << ", budget " << budget;
    EXPECT_LE(total(plan), budget);
    needs.same_chunk = false;
    EXPECT_LE(plan.chunk, plan_memory(budget, needs).chunk);
    larger += plan.chunk > 16 ? 1 : 0;
  }
  EXPECT_GT(differ, 20u);  // else this test says nothing
  EXPECT_GT(larger, 1000u);
}

// Also of processes beyond the usual size, as those of sanitizers and of a GPU's libraries are.
TEST(MemoryPlanTest, TheSameChunkGrowsWithTheBudgetWhateverTheProcessTakes) {
  MemoryNeeds needs = some_needs();
  needs.most_chunk = 4000;
  needs.same_chunk = true;
  for (Bytes process = kMiB; process < 700 * kMiB; process += 7 * kMiB + 4096) {
    needs.process = process;
    std::size_t before = 0;
    for (const Bytes more : {20 * kMiB, 60 * kMiB, 400 * kMiB, 4 * kGiB}) {
      const MemoryPlan plan = plan_memory(process + more, needs);
      EXPECT_LE(total(plan), process + more);
      EXPECT_GE(plan.chunk, std::max<std::size_t>(before, 16));
      before = plan.chunk;
    }
    EXPECT_EQ(before, needs.most_chunk);
  }
}

}  // namespace
}  // namespace sluice::engine
