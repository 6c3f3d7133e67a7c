// P-sorted: one block, longest expert first. zip-affinity is measured against it and falls back to it. SPEC
// §1.5.
#include "experts/schedule/zip_blocks.h"

namespace sluice::experts {
namespace {

class PSortedScheduler final : public Scheduler {
 public:
  void order(std::span<const Task> tasks, const ScheduleCosts&, Schedule& out) override {
    order_p_sorted(tasks, out);
  }
  std::string name() const override { return "p_sorted"; }
};

}  // namespace

std::unique_ptr<Scheduler> make_p_sorted_scheduler() { return std::make_unique<PSortedScheduler>(); }

}  // namespace sluice::experts
