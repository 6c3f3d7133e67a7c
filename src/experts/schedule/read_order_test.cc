#include "experts/schedule/read_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experts/registry.h"

namespace sluice::experts {
namespace {

TEST(ComputeTime, IsALineOrFollowsMeasuredPoints) {
  const ComputeTime line{.fixed = 2, .per_token = .5};
  EXPECT_DOUBLE_EQ(line.of(0), 2);
  EXPECT_DOUBLE_EQ(line.of(6), 5);
  const ComputeTime points{.measured = {{1, 10}, {4, 16}, {8, 40}}};
  EXPECT_DOUBLE_EQ(points.of(1), 10);
  EXPECT_DOUBLE_EQ(points.of(2), 12);
  EXPECT_DOUBLE_EQ(points.of(4), 16);
  EXPECT_DOUBLE_EQ(points.of(6), 28);
  EXPECT_DOUBLE_EQ(points.of(10), 52);
  const ComputeTime falling{.measured = {{1, 2}, {2, 1}}};
  EXPECT_DOUBLE_EQ(falling.of(9), 0);
}

TEST(ReadOrder, HasEachTensorOfEachMissingExpertOnce) {
  const MissingExpert missing[] = {{.id = {1, 2}, .held = Part::kSm, .tensors = 3, .tokens = 4},
                                   {.id = {1, 5}, .held = Part::kMsb, .tensors = 2, .tokens = 1},
                                   {.id = {1, 7}, .tensors = 3}};
  ExpertCosts costs{.fetch = {.chunks = 2, .workers = 2, .u = 3, .v = 1, .c = 1},
                    .run = {.fixed = 1, .per_token = 2}};
  for (const SchedulerPolicy& policy : scheduler_policies()) {
    SCOPED_TRACE(policy.name);
    ReadOrder order;
    order_reads(missing, costs, *policy.make(), order);
    ASSERT_EQ(order.tasks.size(), 8u);
    EXPECT_EQ(order.tasks[0].state, State::kS);
    EXPECT_EQ(order.tasks[0].run, 9);
    EXPECT_EQ(order.tasks[3].state, State::kM);  // slices
    EXPECT_EQ(order.tasks[4].tensor, 1);
    EXPECT_EQ(order.tasks[7].run, 1);
    auto sorted = order.schedule.order;
    std::ranges::sort(sorted);
    for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(sorted[i], i);
    order_reads({}, costs, *policy.make(), order);
    EXPECT_TRUE(order.tasks.empty());
    EXPECT_TRUE(order.schedule.order.empty());
  }
}

}  // namespace
}  // namespace sluice::experts
