// Where an expert stands on a device, and which steps are legal. docs/devices.md, "The stages of an expert".
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::fetch {

enum class DeviceStage : std::uint8_t {
  kAbsent,  // has no buffer there
  kAhead,   // was prefetched for an event that may come
  kStays,   // in a slot: its cache keeps it
  kPasses,  // the running event's: leaves when its launch is queued
};
inline constexpr int kDeviceStages = 4;

// Whether an expert may go from one stage to the other.
bool may_follow(DeviceStage from, DeviceStage to);
std::string_view stage_name(DeviceStage stage);

}  // namespace sluice::fetch
