#include "experts/device_presets.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "experts/device_preset_rows.h"

namespace sluice::experts {

std::uint32_t usual_prefetch_size(std::uint32_t experts) { return experts <= 8 ? 1 : 4; }

std::uint32_t usual_prefetch_size(const DevicePreset* preset, std::uint32_t experts) {
  return preset != nullptr && preset->prefetch_size != 0 ? preset->prefetch_size
                                                         : usual_prefetch_size(experts);
}

bool guards_prefetch(const DevicePreset* preset) { return preset == nullptr || preset->guards_prefetch; }

Admit usual_admit(const DevicePreset* preset) { return preset == nullptr ? Admit::kIdle : preset->admit; }

PrefillPlacement prefill_placement(const DevicePreset* preset, const PlacementPolicy* placement,
                                   const PlacementPolicy* in_prompts) {
  if (in_prompts != nullptr) return {in_prompts};
  if (preset == nullptr || preset->prefill_placement.empty() || placement != nullptr) return {};
  return {preset->prefill_placement.row(), preset->prefill_from};
}

std::span<const DevicePreset> device_presets() { return rows::kDevicePresets; }

const DevicePreset* device_preset_named(std::string_view name) {
  const auto* const found = std::ranges::find(rows::kDevicePresets, name, &DevicePreset::name);
  return found != std::end(rows::kDevicePresets) ? found : nullptr;
}

bool is_device_preset(std::string_view name) { return device_preset_named(name) != nullptr; }

const Preset& host_preset(std::string_view name) {
  if (is_device_preset(name)) return usual_preset();
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  if (found != presets().end()) return *found;
  std::vector<std::string> known = names_in(presets());
  for (std::string& preset : names_in(rows::kDevicePresets)) known.push_back(std::move(preset));
  throw unknown_name(Setting::kPreset, name, known);
}

const DevicePreset& find_device_preset(std::string_view name) {
  if (const DevicePreset* const found = device_preset_named(name); found != nullptr) return *found;
  throw unknown_name(Setting::kPreset, name, names_in(rows::kDevicePresets));
}

}  // namespace sluice::experts
