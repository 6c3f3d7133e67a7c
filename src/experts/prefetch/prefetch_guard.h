// Stops read-ahead that costs more than it saves, and tries again later. Ours.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sluice::experts {

// Read-ahead saves the bytes that it had read of experts that were then needed: the disk was idle, and so
// much less is left to wait for. It costs the bytes that were still on their way of experts that were not
// needed: a demanded read waits behind them. Both are bytes of the same disk. Thread-compatible.
class PrefetchGuard {
 public:
  // Call at every event with the bytes since the event before. False: do not read ahead for the next event.
  bool allows(Bytes saved, Bytes cost);
  std::uint64_t paused_events() const { return paused_; }

 private:
  double saved_ = 0, cost_ = 0;  // over about the last kMemory events
  std::uint32_t seen_ = 0;       // events since read-ahead started or resumed
  std::uint32_t pause_ = 0;      // events left in a pause
  std::uint64_t paused_ = 0;
};

}  // namespace sluice::experts
