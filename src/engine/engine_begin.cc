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
    : impl_(begin_impl(checkpoint, model, std::move(plan), logit_rows, hooks)) {}

std::unique_ptr<Engine::Impl> Engine::begin_impl(const store::Checkpoint& checkpoint,
                                                 const model::Model& model, EnginePlan plan,
                                                 std::size_t logit_rows, const EngineHooks& hooks) {
  process_baseline();  // before anything of a device counts as the process's own
  const auto open = [&] {
    return plan.device && !hooks.second_unit
               ? open_device(checkpoint, model, hooks.devices, hooks.kernels, plan)
               : device::DeviceFacts{};
  };
  if (!plan.without_device) {
    device::DeviceFacts device = open();
    return std::make_unique<Impl>(checkpoint, model, std::move(plan), std::move(device), logit_rows, hooks);
  }
  EnginePlan other = *plan.without_device;
  try {
    device::DeviceFacts device = open();
    if (plan.device_faults.empty())
      return std::make_unique<Impl>(checkpoint, model, std::move(plan), std::move(device), logit_rows, hooks);
    other.device_faults = std::move(plan.device_faults);
    other.no_device = device_warning(other);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;
    other.no_device = error.what();  // what has nothing to do with the device comes again
  }
  return std::make_unique<Impl>(checkpoint, model, std::move(other), device::DeviceFacts{}, logit_rows,
                                hooks);
}

}  // namespace sluice::engine
