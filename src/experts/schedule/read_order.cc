#include "experts/schedule/read_order.h"

#include "base/error.h"

namespace sluice::experts {
namespace {

State planned_state(Parts held) {
  return held.has(Part::kMsb) || held.has(Part::kLsb) ? State::kM : state_of(held);
}

}  // namespace

void ReadOrder::clear() {
  tasks.clear();
  schedule.order.clear();
  schedule.block_end.clear();
}

void order_reads(std::span<const MissingExpert> missing, const ExpertCosts& costs, Scheduler& scheduler,
                 ReadOrder& out) {
  out.clear();
  for (const MissingExpert& one : missing) {
    const double run = costs.run.of(one.tokens);
    for (std::uint16_t tensor = 0; tensor < one.tensors; ++tensor)
      out.tasks.push_back({one.id, tensor, planned_state(one.held), run});
  }
  if (out.tasks.empty()) return;
  scheduler.order(out.tasks, costs.fetch, out.schedule);
  SLUICE_CHECK(
      out.schedule.order.size() == out.tasks.size() && out.schedule.block_end.back() == out.tasks.size(),
      scheduler.name() + " orders other tasks than it was given");
}

}  // namespace sluice::experts
