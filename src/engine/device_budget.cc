#include "engine/device_budget.h"

#include <algorithm>
#include <optional>

#include "device/first_fit.h"
#include "engine/engine_device.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/forward/unit/make_unit_kernels.h"
#include "engine/session/encoder_memory.h"
#include "engine/session/kv_pool.h"
#include "fetch/device/device_store.h"

namespace sluice::engine {
namespace {

// Empty: what the slots need.
std::optional<Bytes> budget_of(const DeviceChoice& choice) {
  return choice.memory || choice.slots ? choice.memory : default_device_memory();
}

Bytes least_of(const DeviceChoice& choice, const DeviceNeeds& needs) {
  return least_device_memory(needs) + choice.slots.value_or(0) * needs.layers * needs.expert;
}

}  // namespace

DeviceNeeds device_needs(const BudgetParts& parts, const UnitParts& unit, DenseView view) {
  using device::FirstFit;
  const DeviceChoice& choice = parts.plan.device.value();
  const fetch::DeviceBufferBytes buffer =
      fetch::DeviceStore::buffer_bytes(unit.store, choice.slot_form.packed);
  const bool slots_have_lsb = choice.slot_form.slices.has(experts::Part::kLsb);
  const Bytes lsb = FirstFit::cost(buffer.lsb);
  DeviceNeeds needs{.activations = FirstFit::cost(DeviceUnit::activation_bytes(unit)) +
                                   FirstFit::cost(unit_kernel_bytes(choice.spec.threads, unit)),
                    .expert = FirstFit::cost(buffer.expert) + (slots_have_lsb ? lsb : 0),
                    .staging_more = slots_have_lsb ? 0 : lsb,
                    .prefetch = choice.prefetch_size,
                    .layers = static_cast<std::uint32_t>(unit.config.sparse_layers()),
                    .layer_experts = static_cast<std::uint32_t>(unit.config.moe.experts)};
  if (!unit.dense_there) return needs;
  BudgetParts there = parts;
  there.dense_there = true;
  needs.dense = FirstFit::cost(DenseWeights::device_bytes(parts.checkpoint, parts.model, view));
  needs.kv = FirstFit::cost(KvPool::bytes(unit.config, parts.plan.cache_dtype, kv_rows(parts.plan))) +
             parts.plan.sequences * FirstFit::cost(EncoderMemory::bytes(unit.config, parts.plan.cache_dtype,
                                                                        parts.plan.encoder_positions));
  needs.activations += FirstFit::cost(workspace_bytes(unit.config, workspace_shape(there, unit.tokens)).unit);
  return needs;
}

bool dense_goes_there(const BudgetParts& parts, const UnitParts& unit, DenseView view) {
  const DeviceChoice& choice = parts.plan.device.value();
  if (choice.dense_on != DenseOn::kAuto) return choice.dense_on == DenseOn::kDevice;
  const std::optional<Bytes> budget = budget_of(choice);
  return !budget || least_of(choice, device_needs(parts, unit, view)) <= *budget;
}

std::size_t device_chunk(const BudgetParts& parts, UnitParts unit, DenseView view, std::size_t chunk) {
  const DeviceChoice& choice = parts.plan.device.value();
  const std::optional<Bytes> budget = budget_of(choice);
  const std::size_t least = std::min(least_chunk(parts.plan.sequences), chunk);
  const auto fits = [&](std::size_t tokens) {
    unit.tokens = unit.scratch.tokens = tokens;
    const DeviceNeeds needs = device_needs(parts, unit, view);
    const Bytes others = least_of(choice, needs) - needs.activations;
    return others <= *budget && needs.activations <= (*budget - others) / 4;
  };
  while (budget && chunk > least && !fits(chunk)) chunk = std::max(least, chunk / 2);
  return chunk;
}

}  // namespace sluice::engine
