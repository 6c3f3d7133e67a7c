// Stops read-ahead that costs more than it saves, and tries again later. Ours.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sluice::experts {

// What read-ahead saves is what it had read of experts that were then needed: the disk was idle, so that much
// less is left to wait for. What it costs is what was still on its way of experts that were not needed: a
// demanded read waits behind it. Both in bytes of the same disk. Thread-compatible.
class PrefetchGuard {
 public:
  // At every event: bytes since the one before. False: do not read ahead for the next one.
  bool allows(Bytes saved, Bytes cost);
  std::uint64_t paused_events() const { return paused_; }

 private:
  double saved_ = 0, cost_ = 0;  // of about the last kMemory events
  std::uint32_t seen_ = 0;       // events since read-ahead was begun, or begun again
  std::uint32_t pause_ = 0;      // events left of a pause
  std::uint64_t paused_ = 0;
};

}  // namespace sluice::experts
