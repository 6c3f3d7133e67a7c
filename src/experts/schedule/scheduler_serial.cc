// Serial: one block, by ascending expert and tensor; tied tasks stay as given. The fetch order of SMoE and
// DALI (SPEC §5.2), and the plain order to compare others with.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "experts/schedule/scheduler.h"

namespace sluice::experts {
namespace {

class SerialScheduler final : public Scheduler {
 public:
  void order(std::span<const Task> tasks, const ScheduleCosts&, Schedule& out) override {
    out.order.resize(tasks.size());
    std::iota(out.order.begin(), out.order.end(), 0u);
    std::ranges::sort(out.order, {}, [&](std::uint32_t i) {
      return std::tuple(tasks[i].expert, tasks[i].tensor, i);  // stable_sort would allocate
    });
    out.block_end.clear();
    if (!tasks.empty()) out.block_end.push_back(static_cast<std::uint32_t>(tasks.size()));
  }
  std::string name() const override { return "serial"; }
};

}  // namespace

std::unique_ptr<Scheduler> make_serial_scheduler() { return std::make_unique<SerialScheduler>(); }

}  // namespace sluice::experts
