// Stops read-ahead that costs more than it saves, and tries again later. Ours.
#pragma once

#include <cstdint>

namespace sluice::experts {

// How long a guard looks back, and how soon it judges and tries again, in events.
struct GuardPace {
  double memory = 64;
  std::uint32_t trial = 32, pause = 1024;
};

// Read-ahead saves the bytes that it had read of experts that were then needed: the disk was idle, and so
// much less is left to wait for. It costs the bytes that were still on their way of experts that were not
// needed: a demanded read waits behind them. Both are bytes of the same disk; LayerGuards asks it about
// times of a link. Thread-compatible.
class PrefetchGuard {
 public:
  explicit PrefetchGuard(const GuardPace& pace = {}) : pace_(pace) {}
  // Call at every event with what has come up since the event before, both in one unit. False: do not read
  // ahead for the next event.
  bool allows(double saved, double cost);
  std::uint64_t paused_events() const { return paused_; }

 private:
  GuardPace pace_;
  double saved_ = 0, cost_ = 0;  // over about the last pace_.memory events
  std::uint32_t seen_ = 0;       // events since read-ahead started or resumed
  std::uint32_t pause_ = 0;      // events left in a pause
  std::uint64_t paused_ = 0;
};

}  // namespace sluice::experts
