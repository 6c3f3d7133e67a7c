#include "fetch/memory/expert_stage.h"

#include <gtest/gtest.h>

#include <set>

#include "fetch/memory/expert_in_memory.h"

namespace sluice::fetch {
namespace {

constexpr ExpertStage kAll[] = {ExpertStage::kResting,  ExpertStage::kReady,     ExpertStage::kWaiting,
                                ExpertStage::kFetching, ExpertStage::kInUse,     ExpertStage::kAhead,
                                ExpertStage::kUpdating, ExpertStage::kReturning, ExpertStage::kWithdrawn};

std::set<ExpertStage> followers(ExpertStage from) {
  std::set<ExpertStage> found;
  for (const ExpertStage to : kAll)
    if (may_follow(from, to)) found.insert(to);
  return found;
}

TEST(ExpertStage, EveryStageIsReachedAndLeft) {
  using enum ExpertStage;
  ASSERT_EQ(std::size(kAll), std::size_t{kExpertStages});
  EXPECT_EQ(followers(kResting), (std::set{kReady, kWaiting, kAhead, kUpdating, kReturning}));
  EXPECT_EQ(followers(kReady), (std::set{kInUse, kResting}));
  EXPECT_EQ(followers(kWaiting), (std::set{kFetching, kResting}));
  EXPECT_EQ(followers(kFetching), (std::set{kInUse, kResting}));
  EXPECT_EQ(followers(kInUse), (std::set{kResting}));
  EXPECT_EQ(followers(kAhead), (std::set{kFetching, kWithdrawn, kResting}));
  EXPECT_EQ(followers(kUpdating), (std::set{kFetching, kWithdrawn, kResting}));
  EXPECT_EQ(followers(kReturning), (std::set{kResting}));
  EXPECT_EQ(followers(kWithdrawn), (std::set{kResting}));
}

// An expert whose buffers threads may write to never becomes one that others rely on.
TEST(ExpertStage, AWithdrawnExpertIsUsedOnlyAfterItHasRested) {
  for (const ExpertStage to : kAll)
    EXPECT_EQ(may_follow(ExpertStage::kWithdrawn, to), to == ExpertStage::kResting) << stage_name(to);
}

TEST(ExpertStage, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const ExpertStage stage : kAll) names.insert(stage_name(stage));
  EXPECT_EQ(names.size(), std::size(kAll));
}

TEST(ExpertStageDeath, AStepThatIsNotLegalIsFound) {
  ExpertInMemory expert;
  expert.id = {3, 7};
  expert.enter(ExpertStage::kAhead);
  EXPECT_DEATH(expert.enter(ExpertStage::kInUse), "expert 3/7 goes from ahead to in use");
}

}  // namespace
}  // namespace sluice::fetch
