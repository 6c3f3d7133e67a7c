// Cache-affinity scheduling: blocks in which tasks whose bytes are in memory (Type-II) keep the decode
// workers busy while the other tasks (Type-I) are read. ZipMoE (arXiv 2601.21198) Alg. 1, with the
// resolutions (a) to (e) of SPEC §1.5.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "experts/schedule/block_eval.h"
#include "experts/schedule/makespan.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// Where a task may be inserted into a block: rule (c).
enum class InsertRule {
  kAfterPeers,  // never before a task of its class whose expert runs as long or longer
  kAnywhere,    // as the paper prints it: short experts overtake long ones
};

// One block of all tasks, longest expert first: by (run desc, expert, tensor).
void order_p_sorted(std::span<const Task> tasks, Schedule& out);
// One block, all Type-II tasks first, each class in that order.
void order_type_two_first(std::span<const Task> tasks, Schedule& out);

// The search. It reuses its memory. Thread-compatible.
class CacheAffinity {
 public:
  // Replaces `out`. Returns false, with `out` unspecified, if it would try more than `most_decodes` decodes.
  bool order(std::span<const Task> tasks, const ScheduleCosts& costs, InsertRule rule,
             std::uint64_t most_decodes, Schedule& out);

  // How many decodes may be tried so that trying takes less than 5 % of the layer's time, estimated by the
  // lower bounds of SPEC §1.6. Unlimited if costs.step is 0.
  std::uint64_t affordable_decodes(std::span<const Task> tasks, const ScheduleCosts& costs);

 private:
  // Tasks of one class that are in no block yet, in the order of their key.
  struct Waiting {
    std::vector<std::uint32_t> tasks;
    std::size_t next = 0;
    bool empty() const { return next == tasks.size(); }
    std::uint32_t front() const { return tasks[next]; }
    std::uint32_t pop() { return tasks[next++]; }
  };

  void begin(std::span<const Task> tasks, const ScheduleCosts& costs);
  bool make_block();
  bool insert(std::uint32_t task, double& idle);
  std::size_t behind_betters(std::uint32_t task, bool type_one) const;
  bool affordable() const;
  double evaluate(BlockClock& clock, double most_idle = std::numeric_limits<double>::infinity());

  std::span<const Task> tasks_;
  ScheduleCosts costs_;
  InsertRule rule_ = InsertRule::kAfterPeers;
  std::uint64_t most_decodes_ = 0;
  BlockEval eval_;
  std::vector<std::uint32_t> all_;
  Waiting one_, two_;
  std::vector<std::uint32_t> block_;
  BlockClock clock_, after_, candidate_;  // before the block; after it; after a trial
  BoundsScratch bounds_;
};

}  // namespace sluice::experts
