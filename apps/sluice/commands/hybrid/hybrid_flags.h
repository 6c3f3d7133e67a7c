// The flags of a replay with a host and a device, as typed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "flags/device_cache_flags.h"

namespace sluice::app {

class Command;

struct HybridFlags {
  std::string memories, slots, caches, placement, placement_prefill, prefetch, batches, tiers, link,
      device_keep;
  DeviceCacheFlags cache_rules;
  std::optional<std::uint64_t> prefetch_size;
  bool asked() const {
    return !(memories.empty() && slots.empty() && caches.empty() && placement.empty() &&
             placement_prefill.empty() && prefetch.empty() && batches.empty() && tiers.empty() &&
             link.empty() && device_keep.empty()) ||
           cache_rules.asked() || prefetch_size;
  }
};
// `flags` must outlive `command`.
void add_hybrid_flags(Command& command, HybridFlags& flags);

}  // namespace sluice::app
