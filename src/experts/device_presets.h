// Sets of policies for a host and a device side by side, each under one name: DALI, what it is compared with,
// and ours. All compute the same, with the model's own routing. SPEC §3.7, §6.3 and §10 (G10, G11).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::experts {

struct DevicePreset {
  std::string_view name, device_cache, placement;
  std::string_view prefetch = "none";  // of the device; a name that registry.h does not have is not built
  std::string_view prefill_placement = {};  // empty: as `placement`
  std::uint32_t prefill_from = 1;           // tokens of a prompt from which on that holds
  std::string_view source = {};
  std::string_view missing = {};  // why it cannot run at all; empty: it can
};

std::span<const DevicePreset> device_presets();
const DevicePreset& find_device_preset(
    std::string_view name);  // Error(kUsage), also for those that cannot run

}  // namespace sluice::experts
