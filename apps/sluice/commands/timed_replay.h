// `sluice simulate` with a profile: the times of whole systems for recorded routing, on a virtual clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/setting.h"
#include "experts/cache/zip_pools.h"

namespace sluice::app {

class Command;

struct TimedFlags {
  std::string profile, presets, memories, ranks_of;
  std::int64_t workers = 0;  // 0: those of the profile
  bool asked() const { return !(profile.empty() && presets.empty() && memories.empty() && ranks_of.empty()); }
};
void add_timed_flags(Command& command, TimedFlags& flags);

struct TimedRequest {
  std::string trace, scope;
  std::uint64_t seed = 0;
  bool json = false, quiet = false;
  experts::PoolRules rules;
};
// Prints a table, or one JSON object.
void timed_replay(const TimedRequest& request, const TimedFlags& flags);

}  // namespace sluice::app
