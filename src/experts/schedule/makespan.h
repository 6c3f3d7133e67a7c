// The time that an order of tasks takes: the simulated makespan of a layer, and lower bounds for every order.
// ZipMoE (arXiv 2601.21198) Theorem 3.1; SPEC §1.6.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "experts/schedule/block_eval.h"
#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// One expert on the compute unit, which runs one expert at a time: at each moment the first that is ready.
struct ExpertRun {
  ExpertId expert;
  double ready = 0;  // when all its tensors are ready
  double start = 0, end = 0;
};

struct Timeline {
  std::vector<ExpertRun> runs;  // by first appearance in the blocks
  std::vector<double> ready;    // (tasks)
  double io = 0;                // the disk's end
  std::vector<double> workers;  // (L) when each decode worker ends, ascending
  double idle = 0;              // time that workers wait before a decode, over all blocks
  double makespan = 0;          // the end of everything
};
// busy: until then the compute unit works on other experts, which needed no task.
Timeline simulate(std::span<const Task> tasks, const ScheduleCosts& costs, const Schedule& schedule,
                  double busy = 0);

// No order takes less than any of these. The paper's eq. 3 for the last bound is not a bound: decoding
// overlaps reading.
struct LowerBounds {
  double io = 0;      // I: all reads
  double decode = 0;  // C / L: all decodes, evenly over the workers
  double run = 0;     // P: all experts
  double path = 0;    // Z: the longest single task, alone, with its expert
  double most() const;
};
// Memory that is reused: schedulers ask at every event.
struct BoundsScratch {
  BlockEval eval;
  BlockClock clock;
  std::vector<double> ready;
  std::vector<std::pair<ExpertId, double>> runs;
};
LowerBounds lower_bounds(std::span<const Task> tasks, const ScheduleCosts& costs, BoundsScratch& scratch);
LowerBounds lower_bounds(std::span<const Task> tasks, const ScheduleCosts& costs);

}  // namespace sluice::experts
