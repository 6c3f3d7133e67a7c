// The replays of caches that `sluice simulate` is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/simulate/simulate_options.h"
#include "experts/registry.h"
#include "lab/replay/replay.h"
#include "lab/replay/routed_replay.h"

namespace sluice::app {

// One cache of one capacity, and what its replay found.
struct CacheRow {
  lab::ReplaySettings settings;
  std::string capacity;  // as typed
  lab::ReplayRouter router = {};
  lab::ReplayResult result = {};
  lab::ReplayRouting routing = {};
  double seconds = 0;

  // Whether the replay needs the logits of all experts.
  bool needs_scores() const {
    return router.routes() || settings.cache->scores != experts::CacheScores::kNone;
  }
};

// Whether a cache is for a device alone; then no host has it.
bool is_for_a_device(const experts::CachePolicy& policy);
// Those of a list as typed, or all that can be replayed beside each other. Error(kUsage).
std::vector<std::string> cache_names(const std::string& list, bool routed);
// "100" means experts, "4GiB" bytes. Error(kUsage).
void set_capacity(const std::string& text, lab::ReplaySettings& settings);

// Every cache with every capacity. Error(kUsage).
std::vector<CacheRow> cache_rows(const SimulateOptions& options, const lab::ReplayRouter& router,
                                 const std::vector<std::string>& caches);
// Where no capacity was typed: each row's is that of its slots, of this many layers.
void set_capacity_of_slots(std::uint32_t layers, std::vector<CacheRow>& rows);

}  // namespace sluice::app
