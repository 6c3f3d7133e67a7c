// How an engine is made: with the device of its plan, or without it.
#include "base/error.h"
#include "engine/device_check.h"
#include "engine/engine_impl.h"
#include "engine/plan/memory_plan.h"

namespace sluice::engine {

Engine::Engine(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
               std::size_t logit_rows)
    : Engine(checkpoint, model, std::move(plan), logit_rows, EngineHooks()) {}

Engine::Engine(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
               std::size_t logit_rows, const EngineHooks& hooks)
    : impl_(begin_impl(checkpoint, model, plan, logit_rows, hooks)) {}

std::unique_ptr<Engine::Impl> Engine::begin_impl(const store::Checkpoint& checkpoint,
                                                 const model::Model& model, const EnginePlan& plan,
                                                 std::size_t logit_rows, const EngineHooks& hooks) {
  process_baseline();  // before anything of a device counts as the process's own
  const auto settled = [&]() -> SettledPlan {
    if (hooks.second_unit) return {plan};
    return settled_plan(checkpoint, model, hooks.devices, hooks.kernels, plan);
  };
  const auto begun = [&](SettledPlan by) {
    return std::make_unique<Impl>(checkpoint, model, std::move(by.plan), std::move(by.device), logit_rows,
                                  hooks);
  };
  if (!plan.without_device) return begun(settled());
  EnginePlan other = *plan.without_device;
  try {
    SettledPlan with_device = settled();
    if (with_device.plan.device_faults.empty()) return begun(std::move(with_device));
    other.device_faults = std::move(with_device.plan.device_faults);
    other.no_device = device_warning(other);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;
    other.no_device = error.what();  // what has nothing to do with the device comes again
  }
  return begun({std::move(other)});
}

}  // namespace sluice::engine
