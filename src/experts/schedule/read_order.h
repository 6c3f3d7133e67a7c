// In which order the experts of an event are read: what is missing becomes tasks, and a scheduler orders
// them. SPEC §1.3-1.6.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/core/ids.h"
#include "experts/schedule/expert_costs.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// An expert of an event that must be read or decoded before it can be computed with.
struct MissingExpert {
  ExpertId id;
  Parts held = {};            // physically in memory
  std::uint16_t tensors = 0;  // how many the expert has
  std::uint32_t tokens = 0;   // that use it
};

struct ReadOrder {
  std::vector<Task> tasks;  // each tensor of each missing expert
  Schedule schedule;        // for `tasks`

  void clear();
};

// Replaces `out`. Without missing experts no scheduler is asked. Slices have no exponents to decode: an
// expert in slices is planned as if nothing of it were there.
void order_reads(std::span<const MissingExpert> missing, const ExpertCosts& costs, Scheduler& scheduler,
                 ReadOrder& out);

}  // namespace sluice::experts
