// What a call of `sluice simulate` asks for, as typed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "commands/hybrid/hybrid_flags.h"
#include "commands/machine_replay.h"
#include "commands/timed_replay.h"
#include "experts/cache/zip_pools.h"
#include "flags/common_flags.h"
#include "flags/slice_flags.h"
#include "lab/replay/routed_replay.h"

namespace sluice::app {

struct SimulateOptions {
  CommonFlags common;
  std::string trace, caches, capacities, scope, keep = "full", expert_bytes, decisions, pools;
  experts::PoolRules rules;
  TimedFlags timed;
  SliceFlags slices;
  MachineFlags machine;
  HybridFlags hybrid;
  std::uint64_t window = 0;

  std::uint64_t seed() const { return common.seed.value_or(0); }
};

// The router that replays of caches are asked for.
lab::ReplayRouter cache_router(const SimulateOptions& options);

// Whether the flags ask for a host and a device; then nothing else may be asked for. Error(kUsage).
bool asks_for_a_device(const SimulateOptions& options);
// A router may also be that of a replay of caches.
bool asks_for_a_machine(const SimulateOptions& options);

// Refuse, with Error(kUsage), what these replays do not take: replays on a machine without a device; timed
// ones, naming the flag that makes the replay a timed one; and those of whole experts, by that router.
void check_machine_options(const SimulateOptions& options);
void check_timed_options(const SimulateOptions& options);
void check_whole_experts(const SliceFlags& flags, const lab::ReplayRouter& router = {});

}  // namespace sluice::app
