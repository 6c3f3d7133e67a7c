#include "engine/device_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/setting.h"
#include "device/first_fit.h"
#include "engine/engine_device.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/forward/unit/make_unit_kernels.h"
#include "engine/session/encoder_memory.h"
#include "engine/session/kv_pool.h"
#include "fetch/device/device_store.h"
#include "kernels/gpu/gpu_formats.h"
#include "kernels/gpu/gpu_kernels.h"

namespace sluice::engine {
namespace {

// Empty: what the slots need.
std::optional<Bytes> budget_of(const BudgetParts& parts) {
  const DeviceChoice& choice = parts.plan.device.value();
  return choice.memory || choice.slots ? choice.memory : usual_device_memory(parts.device);
}

// What the device has computed otherwise than the host; empty: nothing that the dense part needs.
std::string dense_fault(const EnginePlan& plan) {
  for (const kernels::UnitFault& fault : plan.device_faults)
    if (fault.of_dense) return "the device does not compute " + fault.operation + " as the host does";
  return "";
}

// Names of formats, each once; empty: none is lacking.
std::string dense_formats_lacking(const DeviceChoice& choice,
                                  std::span<const codec::MatrixFormat* const> formats) {
  std::string names;
  if (choice.spec.is_played()) return names;
  for (const codec::MatrixFormat* const format : formats)
    if (!kernels::gpu_multiplies(*format))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", format->name);
  return names;
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
  DeviceNeeds needs{
      .context = parts.device.context,
      .activations = FirstFit::cost(DeviceUnit::activation_bytes(unit)) +
                     FirstFit::cost(unit_kernel_bytes(choice.spec, unit)),
      .expert = FirstFit::cost(buffer.expert) + (slots_have_lsb ? lsb : 0),
      .staging_more = slots_have_lsb ? 0 : lsb,
      .prefetch = choice.prefetch_size,
      .layers = static_cast<std::uint32_t>(choice.experts_lack.layers_there(unit.config.sparse_layers())),
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

Bytes recover_room(const BudgetParts& parts, UnitParts unit, DenseView view) {
  const DeviceChoice& choice = parts.plan.device.value();
  if (choice.spec.is_played() || unit.tokens < kernels::kRecoverTokens) return 0;
  const model::ModelConfig& config = unit.config;
  Bytes words =
      unit.dense_there ? DenseWeights::recovered_bytes_at_once(parts.checkpoint, parts.model, view) : 0;
  if (unit.store.facts().can_be_packed && choice.experts_lack.layers_there(config.sparse_layers()) > 0) {
    const std::size_t width = config.moe.width, up_rows = width * config.activation.up_rows();
    words = std::max({words, 2 * kernels::recovered_bytes(width, config.hidden),
                      kernels::recovered_bytes(up_rows, config.hidden),
                      kernels::recovered_bytes(config.hidden, width)});
  }
  unit.recover_room = 0;
  const std::optional<Bytes> budget = budget_of(parts);
  const Bytes least = least_of(choice, device_needs(parts, unit, view));
  if (!budget || words == 0) return words;
  if (*budget < least || words > (*budget - least) / 4) return 0;
  // Several experts at a time keep a GPU busy: eight are multiplied 2.7 times as fast as packed, and one by
  // one 1.6 times (of 1408 x 2048, 64 tokens each; H100).
  constexpr Bytes kMostAtOnce = 8, kShare = 64;
  return words * std::clamp<Bytes>((*budget - least) / kShare / words, 1, kMostAtOnce);
}

DensePlace dense_place(const BudgetParts& parts, const UnitParts& unit, DenseView view) {
  const DeviceChoice& choice = parts.plan.device.value();
  if (std::string fault = dense_fault(parts.plan); !fault.empty()) return {false, std::move(fault)};
  const std::string lacking = dense_formats_lacking(choice, parts.dense_formats);
  if (choice.dense_on == DenseOn::kDevice) {
    if (lacking.empty()) return {true, "as asked"};
    throw Error(ErrorKind::kUnsupported, "the device has no kernels for the dense weights of this model")
        .in(Setting::kDenseOn)
        .expected("host or auto for dense matrices in " + lacking)
        .found("device")
        .fix("leave " + Setting::kDenseOn + " out");
  }
  if (!lacking.empty()) return {false, "the device has no kernels for dense matrices in " + lacking};
  const std::optional<Bytes> budget = budget_of(parts);
  const Bytes least = least_of(choice, device_needs(parts, unit, view));
  if (!budget || least <= *budget) return {true, "they fit beside two experts"};
  return {false, fmt::format("beside two experts they take {} of the device's memory, which is {}",
                             format_bytes(least), format_bytes(*budget))};
}

std::size_t device_chunk(const BudgetParts& parts, UnitParts unit, DenseView view, std::size_t chunk) {
  const DeviceChoice& choice = parts.plan.device.value();
  const std::optional<Bytes> budget = budget_of(parts);
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
