#include "engine/plan/device_memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/setting.h"
#include "experts/device_caches.h"

namespace sluice::engine {
namespace {

std::string parts_of(const DeviceMemoryPlan& plan) {
  return fmt::format("context {}, dense {}, kv {}, activations {}, staging {}", format_bytes(plan.context),
                     format_bytes(plan.dense), format_bytes(plan.kv), format_bytes(plan.activations),
                     format_bytes(plan.staging));
}

}  // namespace

Bytes least_device_memory(const DeviceNeeds& needs) {
  return needs.context + needs.dense + needs.kv + needs.activations +
         (kLeastStaging + needs.prefetch) * (needs.expert + needs.staging_more);
}

DeviceMemoryPlan plan_device_memory(std::optional<Bytes> budget, std::optional<std::uint32_t> slots,
                                    const DeviceNeeds& needs) {
  SLUICE_CHECK(budget || slots);
  if (slots) experts::check_layer_has(*slots, needs.layer_experts, Setting::kDeviceSlots);
  DeviceMemoryPlan plan;
  plan.context = needs.context;
  plan.dense = needs.dense;
  plan.kv = needs.kv;
  plan.activations = needs.activations;
  plan.expert = needs.expert;
  plan.staging_slots = kLeastStaging + needs.prefetch;
  plan.staging = plan.staging_slots * (needs.expert + needs.staging_more);
  plan.minimum = least_device_memory(needs);
  plan.slot = needs.layers * needs.expert;
  const Bytes least = plan.minimum + slots.value_or(0) * plan.slot;
  plan.budget = budget.value_or(least);
  if (plan.budget < least) {
    const ComparedBytes sizes = compared_bytes(least, plan.budget);
    throw Error(ErrorKind::kBudget, slots.value_or(0) > 0
                                        ? "the memory of the device does not hold that many slots"
                                        : "the memory of the device is too small for this model and request")
        .in(Setting::kDeviceMemory)
        .expected(fmt::format(
            "at least {} ({}{})", sizes.expected, parts_of(plan),
            slots.value_or(0) > 0 ? fmt::format(", experts {}", format_bytes(*slots * plan.slot)) : ""))
        .found(sizes.found)
        .fix(
            fmt::format("give {} {}MiB or more", mark(Setting::kDeviceMemory), round_up(least, kMiB) / kMiB));
  }
  plan.slots = slots ? *slots : plan.slots_in(plan.budget, needs.layer_experts);
  plan.experts = plan.slots * plan.slot;
  return plan;
}

std::uint32_t DeviceMemoryPlan::slots_in(Bytes bytes, std::uint32_t most) const {
  if (slot == 0 || bytes < minimum) return 0;
  return static_cast<std::uint32_t>(std::min<Bytes>((bytes - minimum) / slot, most));
}

}  // namespace sluice::engine
