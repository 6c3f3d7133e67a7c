// What a replay with a host and a device is asked for, as rows: every combination of machine, preset, cache,
// slots and batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "commands/hybrid/hybrid_flags.h"
#include "lab/machine/hybrid_machine.h"
#include "lab/replay/hybrid_replay.h"
#include "trace/routing_trace.h"

namespace sluice::app {

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
  std::string router = {};                           // as typed; empty: the preset's
  experts::SmoeRules smoe = {};                      // where the router is smoe …
  std::vector<Setting> smoe_flags = {};              // … and the flags by which they were given
  std::optional<experts::SliceSetting> slices = {};  // experts in slices, by these rules; empty: whole ones
};

struct HybridRow {
  const lab::HybridMachine* machine = nullptr;
  std::string preset;
  std::optional<std::uint32_t> batch;  // empty: as it was recorded
  lab::HybridSettings settings;
  lab::HybridResult result;
  // Predicted by what was in the memory of other devices than the row's: these, in words. Empty: not so.
  std::string predicted_beside = {};
};

// Their hosts are as HybridSettings has them. Error(kUsage).
std::vector<HybridRow> hybrid_rows(const HybridRequest& request, const HybridFlags& flags,
                                   const std::vector<lab::HybridMachine>& machines,
                                   const trace::TraceHeader& header);
// Refuses flags that act on no row.
void check_hybrid_effects(const HybridRequest& request, const HybridFlags& flags,
                          const std::vector<HybridRow>& rows);
// Whether the row's router changes routing: the text would not be the model's own.
bool is_lossy(const HybridRow& row);
// An error about a policy that the row's preset chose, not a flag, is about that preset.
void blame_preset(Error& error, const HybridRow& row, const HybridRequest& request, const HybridFlags& flags);

}  // namespace sluice::app
