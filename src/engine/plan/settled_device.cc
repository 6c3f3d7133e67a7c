#include "engine/plan/settled_device.h"

#include <utility>

#include "experts/device_caches.h"

namespace sluice::engine {

void settle_device(EngineOptions& options, const std::function<device::FoundDevice()>& find) {
  if (options.device != device::kAnyDevice) return;
  if (options.preset.is_chosen() && options.preset.device() == nullptr)
    return drop_device(options, "the preset " + std::string(options.preset.name()) + " is of the host alone");
  device::FoundDevice found = find();
  if (!found.spec) return drop_device(options, std::move(found.why));
  options.device = device::to_text(*found.spec);
  options.device_is_found = true;
}

void drop_device(EngineOptions& options, std::string why) {
  options.device = device::kNoDevice;
  options.device_is_found = false;
  options.device_lack = std::move(why);
}

std::optional<Setting> given_device_setting(const EngineOptions& options) {
  const std::pair<bool, Setting> given[] = {{options.device_memory.has_value(), Setting::kDeviceMemory},
                                            {options.device_slots.has_value(), Setting::kDeviceSlots},
                                            {options.device_math.has_value(), Setting::kDeviceMath},
                                            {options.dense_on.has_value(), Setting::kDenseOn},
                                            {options.tiers.has_value(), Setting::kTiers},
                                            {options.prefetch_size.has_value(), Setting::kPrefetchSize},
                                            {options.link_bytes_per_s.has_value(), Setting::kLink},
                                            {!options.popularity_name.empty(), Setting::kRanksOf},
                                            {!options.device_cache.empty(), Setting::kDeviceCache},
                                            {options.device_cache_rules.steps.has_value(), Setting::kWSize},
                                            {options.device_cache_rules.swaps.has_value(), Setting::kUSize},
                                            {options.device_cache_rules.admit.has_value(), Setting::kAdmit},
                                            {!options.placement_prefill.empty(), Setting::kPlacementPrefill},
                                            {options.device_keep != DeviceKeep::kAuto, Setting::kDeviceKeep}};
  for (const auto& [is_given, setting] : given)
    if (is_given) return setting;
  return std::nullopt;
}

}  // namespace sluice::engine
