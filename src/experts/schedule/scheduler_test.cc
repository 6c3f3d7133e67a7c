#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;

TEST(SerialScheduler, OneBlockByExpertAndTensor) {
  const Task tasks[] = {{.expert = {0, 7}, .tensor = 1},
                        {.expert = {0, 2}, .tensor = 2},
                        {.expert = {0, 2}, .tensor = 0},
                        {.expert = {0, 7}, .tensor = 0},
                        {.expert = {0, 2}, .tensor = 2}};
  Schedule schedule;
  find_scheduler("serial").make()->order(tasks, {}, schedule);
  EXPECT_THAT(schedule.order, ElementsAre(2, 1, 4, 3, 0));
  EXPECT_THAT(schedule.block_end, ElementsAre(5));
}

TEST(SerialScheduler, NoTasksNoBlocks) {
  Schedule schedule{.order = {1}, .block_end = {1}};
  find_scheduler("serial").make()->order({}, {}, schedule);
  EXPECT_TRUE(schedule.order.empty() && schedule.block_end.empty());
}

TEST(HostPlacement, PutsEverythingOnTheHost) {
  const ExpertId experts[] = {{0, 1}, {0, 3}};
  Assignment assignment;
  find_placement("host").make()->assign({.experts = experts}, {}, assignment);
  EXPECT_THAT(assignment.unit, ElementsAre(Unit::kHost, Unit::kHost));
  find_placement("host").make()->assign({}, {}, assignment);
  EXPECT_TRUE(assignment.unit.empty());
}

TEST(NonePrefetch, ProposesNothing) {
  std::vector<PartRequest> requests;
  find_prefetch("none").make({})->propose({}, requests);
  EXPECT_TRUE(requests.empty());
}

TEST(Registry, UnknownNamesAreUsageErrors) {
  EXPECT_THROW(find_scheduler("x"), Error);
  EXPECT_THROW(find_placement(""), Error);
  EXPECT_THROW(find_prefetch("nonee"), Error);
}

}  // namespace
}  // namespace sluice::experts
