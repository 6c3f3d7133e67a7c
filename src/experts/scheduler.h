// Fetch schedulers: in which order the parts that a layer step needs are read and decoded. SPEC §1.4-1.6.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experts/ids.h"

namespace sluice::experts {

// One tensor of one needed expert, with what has to be read for it.
struct Task {
  ExpertId expert;
  std::uint16_t tensor = 0;  // within the expert, e.g. gate, up, down
  Parts reads = {};               // parts to be read; empty: only to be decoded
};

// Positions in the list of tasks, each exactly once, in blocks that are worked off one after the other.
struct Schedule {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> block_end;  // ascending; the last one is order.size(); empty without tasks
};

// Disk and decode workers take the first operation that is available, in this order. Thread-compatible.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual void order(std::span<const Task> tasks, Schedule& out) = 0;  // replaces `out`
  virtual std::string name() const = 0;
};

std::unique_ptr<Scheduler> make_serial_scheduler();

}  // namespace sluice::experts
