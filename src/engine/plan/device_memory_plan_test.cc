#include "engine/plan/device_memory_plan.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr DeviceNeeds kNeeds{.context = 3,
                             .dense = 40,
                             .kv = 5,
                             .activations = 12,
                             .expert = 10,
                             .layers = 4,
                             .layer_experts = 8};  // 80 without slots, 40 for a slot in each layer

TEST(DeviceMemoryPlan, TakesTheSlotsForWhichThereIsRoom) {
  for (const auto& [budget, slots] : {std::pair(80u, 0u), std::pair(119u, 0u), std::pair(120u, 1u),
                                      std::pair(399u, 7u), std::pair(400u, 8u), std::pair(1000u, 8u)}) {
    const DeviceMemoryPlan plan = plan_device_memory(Bytes{budget}, {}, kNeeds);
    EXPECT_EQ(plan.slots, slots) << budget;
    EXPECT_EQ(plan.experts, slots * 40u);
    EXPECT_EQ(plan.staging, 20u);
    EXPECT_EQ(plan.minimum, 80u);
  }
}

TEST(DeviceMemoryPlan, StagingMayTakeMoreThanSlots) {
  DeviceNeeds needs = kNeeds;
  needs.staging_more = 5;
  EXPECT_EQ(least_device_memory(needs), 90u);
  const DeviceMemoryPlan plan = plan_device_memory(Bytes{210}, {}, needs);
  EXPECT_EQ(plan.staging, 30u);
  EXPECT_EQ(plan.slots, 3u);
  EXPECT_EQ(plan.experts, 120u);
  EXPECT_EQ(plan_device_memory({}, 3, needs).budget, 210u);
}

TEST(DeviceMemoryPlan, SlotsSayHowLargeItIs) {
  EXPECT_EQ(plan_device_memory({}, 0, kNeeds).budget, 80u);
  EXPECT_EQ(plan_device_memory({}, 3, kNeeds).budget, 200u);
  EXPECT_EQ(plan_device_memory(Bytes{500}, 3, kNeeds).slots, 3u);
}

void expect_refusal(ErrorKind kind, const std::string& says, std::optional<Bytes> budget,
                    std::optional<std::uint32_t> slots) {
  try {
    plan_device_memory(budget, slots, kNeeds);
    FAIL() << "no error that says " << says;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
  }
}

TEST(DeviceMemoryPlan, RefusesWhatDoesNotFitAndSaysWhatWould) {
  expect_refusal(ErrorKind::kBudget, "at least 80 B", Bytes{79}, {});
  expect_refusal(ErrorKind::kBudget, "--device-memory", Bytes{79}, {});
  expect_refusal(ErrorKind::kBudget, "experts 40 B", Bytes{119}, 1);
  expect_refusal(ErrorKind::kUsage, "--device-slots", Bytes{1000}, 9);
  expect_refusal(ErrorKind::kUsage, "at most 8", {}, 9);
}

// Against counting slot by slot.
TEST(DeviceMemoryPlan, IsWithinTheBudgetAndLeavesNoRoomForASlot) {
  const std::uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  const auto upto = [&](Bytes most) { return std::uniform_int_distribution<Bytes>(0, most)(random); };
  for (int i = 0; i < 2000; ++i) {
    const DeviceNeeds needs{.context = upto(9),
                            .dense = upto(99),
                            .kv = upto(30),
                            .activations = upto(30),
                            .expert = 1 + upto(20),
                            .layers = static_cast<std::uint32_t>(upto(5)),
                            .layer_experts = 1 + static_cast<std::uint32_t>(upto(15))};
    const Bytes fixed = needs.context + needs.dense + needs.kv + needs.activations + 2 * needs.expert;
    const Bytes budget = fixed + upto(1000);
    const DeviceMemoryPlan plan = plan_device_memory(budget, {}, needs);
    std::uint32_t slots = 0;
    Bytes taken = fixed;
    while (needs.layers > 0 && slots < needs.layer_experts && taken + needs.layers * needs.expert <= budget) {
      taken += needs.layers * needs.expert;
      ++slots;
    }
    ASSERT_EQ(plan.slots, slots) << "seed " << seed;
    ASSERT_EQ(plan.minimum + plan.experts, taken);
    ASSERT_LE(taken, budget);
  }
}

}  // namespace
}  // namespace sluice::engine
