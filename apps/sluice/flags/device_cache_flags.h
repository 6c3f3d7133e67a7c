// The flags that say by which rules a device's cache exchanges experts, as typed: of runs and of replays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "experts/device_caches.h"

namespace sluice::app {

class Command;

struct DeviceCacheFlags {
  std::optional<std::uint64_t> w_size, u_size;
  std::string admit;
  bool asked() const { return w_size || u_size || !admit.empty(); }
  experts::WorkloadSetting setting() const;  // Error(kUsage)
};
// `flags` must outlive `command`.
void add_device_cache_flags(Command& command, const std::string& group, DeviceCacheFlags& flags);
// Error(kUsage) for a flag that acts on none of these caches.
void check_device_cache_flags(const DeviceCacheFlags& flags,
                              std::span<const experts::CachePolicy* const> caches);

}  // namespace sluice::app
