// Evaluation of one block of tasks on a planned clock. ZipMoE (arXiv 2601.21198) §4, Def. A.1; SPEC §1.4.
// Used by the schedulers that search for an order, and by the simulator of makespans (makespan.h).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "experts/scheduler.h"

namespace sluice::experts {

// Which parts a task in this state has to read (SPEC §1.3). REQUIRES: not F, which is no task.
inline bool reads_exp(State state) { return state == State::kM || state == State::kS; }
inline bool reads_sm(State state) { return state == State::kM || state == State::kE; }
// Type-I tasks read their sm, Type-II tasks have it.
inline bool is_type_one(State state) { return reads_sm(state); }

// When the disk and the decode workers are free. Carried from block to block.
struct BlockClock {
  double io = 0;
  std::vector<double> workers;  // (L), by worker
};

// One I/O thread reads a block's exponent chunks, then its sm, both in task order; L workers decode the first
// chunk in task order that is there. Times are doubles, summed in that order. O(chunks · L) a run.
// Thread-compatible.
class BlockEval {
 public:
  BlockEval() = default;
  // The tasks must outlive this, or its next reset().
  BlockEval(std::span<const Task> tasks, const ScheduleCosts& costs) { reset(tasks, costs); }
  void reset(std::span<const Task> tasks, const ScheduleCosts& costs) {
    tasks_ = tasks;
    costs_ = costs;
    decodes_ = 0;
  }

  // Advances `clock` over the block (positions in the list of tasks) and returns how long workers stood idle
  // before a decode. Once that exceeds `most_idle` it gives up: the result is some number above it, and
  // `clock` is of no use. ready: null, or (tasks), of which the block's entries are set.
  double run(std::span<const std::uint32_t> block, BlockClock& clock, std::vector<double>* ready = nullptr,
             double most_idle = std::numeric_limits<double>::infinity());

  // The block leaves the workers so busy that the next one starts without waiting for its chunks: the l-th
  // worker to become free does so when the l-th chunk can be there. True where there are no chunks.
  bool dominant(const BlockClock& clock);

  std::uint64_t decodes() const { return decodes_; }  // tried so far, over all runs: what the search has cost

 private:
  std::span<const Task> tasks_;
  ScheduleCosts costs_;
  std::uint64_t decodes_ = 0;
  std::vector<double> available_;  // scratch: chunks that are read, in order
  std::vector<double> sorted_;     // scratch of dominant()
};

}  // namespace sluice::experts
