// How an engine is made: with the device of its plan, or without it.
#include "base/error.h"
#include "engine/engine_impl.h"

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
  if (!plan.without_device)
    return std::make_unique<Impl>(checkpoint, model, std::move(plan), logit_rows, hooks);
  EnginePlan other = *plan.without_device;
  try {
    return std::make_unique<Impl>(checkpoint, model, std::move(plan), logit_rows, hooks);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInterrupted) throw;
    other.no_device = error.what();  // what has nothing to do with the device comes again
  }
  return std::make_unique<Impl>(checkpoint, model, std::move(other), logit_rows, hooks);
}

}  // namespace sluice::engine
