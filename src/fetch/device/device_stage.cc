#include "fetch/device/device_stage.h"

#include <algorithm>
#include <utility>

namespace sluice::fetch {

bool may_follow(DeviceStage from, DeviceStage to) {
  using enum DeviceStage;
  // Every step, with its cause.
  static constexpr std::pair<DeviceStage, DeviceStage> kLegal[] = {
      {kAbsent, kAhead},   // a prefetch starts
      {kAbsent, kStays},   // an event or its cache brings it in, to stay
      {kAbsent, kPasses},  // an event computes it there, and its cache does not keep it
      {kAhead, kStays},    // an event or its cache wants what was copied ahead, to stay
      {kAhead, kPasses},   // an event computes what was copied ahead, and its cache does not keep it
      {kAhead, kAbsent},   // no event does, or its copy has failed or was given up
      {kStays, kPasses},   // its cache drops it in the event that computes it
      {kStays, kAbsent},   // its cache drops it, or its copy has failed or was given up
      {kPasses,
       kAbsent},  // its launch is queued, another expert needs the buffer, or the event was abandoned
  };
  return std::ranges::find(kLegal, std::pair{from, to}) != std::end(kLegal);
}

std::string_view stage_name(DeviceStage stage) {
  static constexpr std::string_view kNames[kDeviceStages] = {"absent", "ahead", "stays", "passes"};
  return kNames[static_cast<int>(stage)];
}

}  // namespace sluice::fetch
