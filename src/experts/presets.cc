#include "experts/presets.h"

#include <algorithm>

#include "base/setting.h"
#include "experts/preset_rows.h"
#include "experts/table_lookup.h"

namespace sluice::experts {

std::span<const Preset> presets() { return rows::kPresets; }
const Preset& usual_preset() { return *std::ranges::find_if(rows::kPresets, &Preset::usual); }
const CachePolicy& usual_slice_cache(PrecisionMode precision) {
  constexpr Named<CachePolicy> kWhole = "lru", kBySlice = "slice-lru";
  return precision == PrecisionMode::kHigh ? *kWhole : *kBySlice;
}
const Preset& find_preset(std::string_view name) { return find_row(presets(), Setting::kPreset, name); }

}  // namespace sluice::experts
