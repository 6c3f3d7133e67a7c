// `sluice simulate` with a host and a device: what DALI and its baselines would have decided for recorded
// routing, and how long that would have taken on a modelled machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::app {

class Command;

struct HybridFlags {
  std::string memories, slots, caches, placement, placement_prefill, prefetch, batches, tiers, link;
  std::optional<std::uint64_t> w_size, u_size, prefetch_size;
  bool asked() const {
    return !(memories.empty() && slots.empty() && caches.empty() && placement.empty() &&
             placement_prefill.empty() && prefetch.empty() && batches.empty() && tiers.empty() &&
             link.empty()) ||
           w_size || u_size || prefetch_size;
  }
};
// `flags` must outlive `command`.
void add_hybrid_flags(Command& command, HybridFlags& flags);

// The host's cache, as typed; empty: lru, one for all layers, of all experts in full, without pools.
struct HybridHostFlags {
  std::string cache, capacity, scope, keep, pools;
};

struct HybridRequest {
  HybridHostFlags host;
  std::string trace, machine, presets, decisions, ranks_of;  // as typed; may be empty, except the trace
  // Tokens of each sequence that are its prompt, for traces that do not mark prompts; empty: 0.
  std::optional<std::uint64_t> prefill = {};
  std::uint64_t seed = 0;
  bool json = false, quiet = false;
};
// Prints a table, or one JSON object. Every combination of machine, preset, cache, slots and batch is a row.
void hybrid_replay(const HybridRequest& request, const HybridFlags& flags);

}  // namespace sluice::app
