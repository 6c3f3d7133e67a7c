// Cache-affinity scheduling: blocks in which tasks whose bytes are there (Type-II) keep the decode workers
// busy while the others (Type-I) are read. ZipMoE (arXiv 2601.21198) Alg. 1, with the resolutions (a) to (e)
// of SPEC §1.5.
#pragma once

#include <cstdint>
#include <span>

#include "experts/scheduler.h"

namespace sluice::experts {

// Where a task may be inserted into a block: rule (c).
enum class InsertRule {
  kAfterPeers,  // not before a task of its class whose expert runs as long or longer
  kAnywhere,    // as printed: then short experts overtake long ones
};

// One block of all tasks, longest expert first: by (run desc, expert, tensor).
void order_p_sorted(std::span<const Task> tasks, Schedule& out);
// One block, all Type-II tasks first, each class as above.
void order_type_two_first(std::span<const Task> tasks, Schedule& out);

// Replaces `out`. False, and `out` is of no use, if it would try more than `most_decodes` decodes.
bool order_cache_affinity(std::span<const Task> tasks, const ScheduleCosts& costs, InsertRule rule,
                          std::uint64_t most_decodes, Schedule& out);

// How many decodes may be tried so that trying takes less than 5 % of the layer's time, of which the lower
// bounds of SPEC §1.6 are taken. Any number of them if costs.step is 0.
std::uint64_t affordable_decodes(std::span<const Task> tasks, const ScheduleCosts& costs);

}  // namespace sluice::experts
