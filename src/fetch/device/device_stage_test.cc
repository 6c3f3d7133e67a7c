#include "fetch/device/device_stage.h"

#include <gtest/gtest.h>

#include <set>

#include "fetch/device/expert_on_device.h"

namespace sluice::fetch {
namespace {

constexpr DeviceStage kAllOnDevice[] = {DeviceStage::kAbsent, DeviceStage::kAhead, DeviceStage::kStays,
                                        DeviceStage::kPasses};

std::set<DeviceStage> followers_there(DeviceStage from) {
  std::set<DeviceStage> found;
  for (const DeviceStage to : kAllOnDevice)
    if (may_follow(from, to)) found.insert(to);
  return found;
}

TEST(DeviceStage, EveryStageIsReachedAndLeft) {
  using enum DeviceStage;
  ASSERT_EQ(std::size(kAllOnDevice), std::size_t{kDeviceStages});
  EXPECT_EQ(followers_there(kAbsent), (std::set{kAhead, kStays, kPasses}));
  EXPECT_EQ(followers_there(kAhead), (std::set{kStays, kPasses, kAbsent}));
  EXPECT_EQ(followers_there(kStays), (std::set{kPasses, kAbsent}));
  EXPECT_EQ(followers_there(kPasses), (std::set{kAbsent}));
}

// What an event has dropped is copied again before anything relies on it.
TEST(DeviceStage, AnExpertThatPassesNeverStays) {
  for (const DeviceStage to : kAllOnDevice)
    EXPECT_EQ(may_follow(DeviceStage::kPasses, to), to == DeviceStage::kAbsent) << stage_name(to);
}

TEST(DeviceStage, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const DeviceStage stage : kAllOnDevice) names.insert(stage_name(stage));
  EXPECT_EQ(names.size(), std::size(kAllOnDevice));
}

TEST(DeviceStageDeath, AStepThatIsNotLegalIsFound) {
  ExpertOnDevice expert;
  expert.id = {3, 7};
  expert.enter(DeviceStage::kStays);
  expert.enter(DeviceStage::kStays);  // no step
  EXPECT_DEATH(expert.enter(DeviceStage::kAhead), "expert 3/7 goes from stays to ahead");
}

}  // namespace
}  // namespace sluice::fetch
