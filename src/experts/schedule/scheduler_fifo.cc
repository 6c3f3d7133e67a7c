// FIFO: every task is a block of its own, in the given order. The per-task baseline of SPEC §1.5.
#include <numeric>

#include "experts/schedule/scheduler.h"

namespace sluice::experts {
namespace {

class FifoScheduler final : public Scheduler {
 public:
  void order(std::span<const Task> tasks, const ScheduleCosts&, Schedule& out) override {
    out.order.resize(tasks.size());
    std::iota(out.order.begin(), out.order.end(), 0u);
    out.block_end.resize(tasks.size());
    std::iota(out.block_end.begin(), out.block_end.end(), 1u);
  }
  std::string name() const override { return "fifo"; }
};

}  // namespace

std::unique_ptr<Scheduler> make_fifo_scheduler() { return std::make_unique<FifoScheduler>(); }

}  // namespace sluice::experts
