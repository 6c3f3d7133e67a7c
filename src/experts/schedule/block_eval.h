// Evaluation of one block of tasks on a planned clock. ZipMoE (arXiv 2601.21198) §4, Def. A.1; SPEC §1.4.
// Used by the schedulers that search for an order, and by the simulator of makespans (makespan.h).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "experts/schedule/scheduler.h"

namespace sluice::experts {

// Whether a task in this state must read its exponents, or its sm (SPEC §1.3). REQUIRES: state is not F; an
// expert in F has no task.
inline bool reads_exp(State state) { return state == State::kM || state == State::kS; }
inline bool reads_sm(State state) { return state == State::kM || state == State::kE; }
// Type-I tasks must read their sm; Type-II tasks have it in memory.
inline bool is_type_one(State state) { return reads_sm(state); }

// When the disk and the decode workers become free. Carried from block to block.
struct BlockClock {
  double io = 0;
  std::vector<double> workers;  // (L), by worker
};

// One I/O thread reads a block's exponent chunks, then its sm, both in task order; L workers decode the first
// chunk in task order that is in memory. Times are doubles, summed in that order. O(chunks · L) per run.
// Thread-compatible.
class BlockEval {
 public:
  BlockEval() = default;
  // The tasks must live until the next reset() or the end of this object.
  BlockEval(std::span<const Task> tasks, const ScheduleCosts& costs) { reset(tasks, costs); }
  void reset(std::span<const Task> tasks, const ScheduleCosts& costs) {
    tasks_ = tasks;
    costs_ = costs;
    decodes_ = 0;
  }

  // Advances `clock` over the block (positions in the list of tasks) and returns how long workers stood idle
  // before a decode. Gives up once that time exceeds `most_idle`: it then returns some number above it, and
  // `clock` is unspecified. ready: null, or (tasks), where the block's entries are set.
  double run(std::span<const std::uint32_t> block, BlockClock& clock, std::vector<double>* ready = nullptr,
             double most_idle = std::numeric_limits<double>::infinity());

  // Whether the block keeps the workers so busy that the next block starts without waiting for its chunks:
  // the l-th worker becomes free no earlier than the l-th chunk can arrive. True for a block without chunks.
  bool dominant(const BlockClock& clock);

  std::uint64_t decodes() const { return decodes_; }  // tried so far, over all runs: the cost of the search

 private:
  std::span<const Task> tasks_;
  ScheduleCosts costs_;
  std::uint64_t decodes_ = 0;
  std::vector<double> available_;  // scratch: chunks that are read, in order
  std::vector<double> sorted_;     // scratch of dominant()
};

}  // namespace sluice::experts
