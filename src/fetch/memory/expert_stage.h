// Where an expert stands between disk and use, and which steps are legal. docs/experts.md, "The stages of an
// expert".
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::fetch {

enum class ExpertStage : std::uint8_t {
  kResting,    // not on its way and not used; some of its parts may be resident
  kReady,      // the running event's: needs no work, and is not yet handed out
  kWaiting,    // the running event's: needs work that has not begun
  kFetching,   // the running event's: under way
  kInUse,      // the running event's: handed out, a pin holds it
  kAhead,      // under way for an event that may come
  kUpdating,   // under way to stay in memory, though no event uses it
  kReturning,  // under way from a device to stay in memory: its link writes to the buffers
  kWithdrawn,  // was kAhead or kUpdating and is not wanted any more: threads may still write to its buffers
};
inline constexpr int kExpertStages = 9;

// Whether an expert may go from one stage to the other.
bool may_follow(ExpertStage from, ExpertStage to);
std::string_view stage_name(ExpertStage stage);

}  // namespace sluice::fetch
