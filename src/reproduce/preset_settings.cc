#include "reproduce/preset_settings.h"

#include "base/error.h"
#include "experts/device_presets.h"

namespace sluice::reproduce {

lab::HybridSettings settings_of(const experts::NamedPreset& preset, std::uint32_t slots,
                                std::uint32_t prefetch_size) {
  SLUICE_CHECK(preset.device() != nullptr);
  const experts::DevicePreset& found = *preset.device();
  lab::HybridSettings settings;
  settings.router = found.router;
  settings.placement = found.placement;
  settings.prefill_placement = found.prefill_placement;
  settings.prefill_from = found.prefill_from;
  settings.device_cache = found.device_cache;
  settings.slots = slots;
  settings.prefetch = found.prefetch;
  settings.guards_prefetch = found.guards_prefetch;
  settings.prefetch_size = found.prefetch_size != 0 ? found.prefetch_size : prefetch_size;
  return settings;
}

}  // namespace sluice::reproduce
