// Fetch schedulers: in which order the parts that a layer step needs are read and decoded. SPEC §1.4-1.6.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experts/core/ids.h"

namespace sluice::experts {

// One tensor of one needed expert that is not in state F.
struct Task {
  ExpertId expert;
  std::uint16_t tensor = 0;  // index within the expert, e.g. gate, up, down
  State state = State::kM;   // the expert's: decides what has to be read and decoded
  double run = 0;            // time to compute the expert once its view is ready (p of SPEC §1.3)
};

// Seconds that a search for an order spends on one decode that it tries (bench/decisions_bench.cc). A
// constant, never measured at run time, so that equal inputs give equal results everywhere.
inline constexpr double kSecondsPerTriedDecode = 10e-9;

// The costs of single operations, all in the unit of Task::run (SPEC §1.3). An expert that is stored whole
// has no exponent chunks: then `chunks` is 0 and `u` is the time to read the tensor.
struct ScheduleCosts {
  unsigned chunks = 1;   // K, exponent chunks of a tensor
  unsigned workers = 1;  // L, decode workers
  // u: time to read one tensor's sm; v: to read one exponent chunk; c: to decode one exponent chunk.
  double u = 0, v = 0, c = 0;
  double step = 0;  // time to try one decode while searching (cost guard); 0: free
};

// Positions in the list of tasks, each exactly once, in blocks that are processed one after the other.
struct Schedule {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> block_end;  // ascending; the last entry is order.size(); empty without tasks
};

// Disk and decode workers always take the first available operation in this order. Pure: equal tasks and
// costs give equal orders. Thread-compatible.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual void order(std::span<const Task> tasks, const ScheduleCosts& costs,
                     Schedule& out) = 0;  // replaces `out`
  // How many orders so far fell back to p_sorted because the search would have cost too much (SPEC §1.5;
  // ScheduleCosts::step).
  virtual std::uint64_t fallbacks() const { return 0; }
  virtual std::string name() const = 0;
};

std::unique_ptr<Scheduler> make_serial_scheduler();
std::unique_ptr<Scheduler> make_fifo_scheduler();
std::unique_ptr<Scheduler> make_p_sorted_scheduler();
std::unique_ptr<Scheduler> make_zip_affinity_scheduler();
std::unique_ptr<Scheduler> make_zip_affinity_literal_scheduler();
std::unique_ptr<Scheduler> make_zip_affinity_best_of_scheduler();

}  // namespace sluice::experts
