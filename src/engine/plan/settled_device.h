// What `auto` means for a device: the GPU that is there, if nobody has said what the host does alone.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/setting.h"
#include "device/choice/make_device.h"
#include "engine/plan/options.h"

namespace sluice::engine {

// Puts a device, or none, in the place of "auto"; otherwise changes nothing. A preset that names no device
// goes without one. Makes no context. `find` is asked only where the answer matters.
void settle_device(EngineOptions& options,
                   const std::function<device::FoundDevice()>& find = device::find_device);

// For a device that `auto` has found.
void drop_device(EngineOptions& options, std::string why);

// A setting that only a run with a device has, which the user has given; empty: none.
std::optional<Setting> given_device_setting(const EngineOptions& options);

}  // namespace sluice::engine
