// What an engine needs of its device's memory, and whether the dense part is to be there.
#pragma once

#include <string>

#include "engine/engine_budget.h"
#include "engine/plan/device_memory_plan.h"
#include "engine/plan/unit_parts.h"

namespace sluice::engine {

// For steps of `unit.tokens`; of the dense part if unit.dense_there. REQUIRES: a device.
DeviceNeeds device_needs(const BudgetParts& parts, const UnitParts& unit, DenseView view);

// Bytes that the kernels of a GPU shall have for words of packed matrices, which their products with many
// tokens are made of: gate and up of the largest expert or dense MLP, or the largest other matrix but the
// output head. 0 where none are packed or steps are short, and where this is no small share of the device's
// memory: products decode them as they go then.
Bytes recover_room(const BudgetParts& parts, UnitParts unit, DenseView view);

// Where the dense part is to be, unless on the host: as asked for, or on the device where that has kernels
// for it, and its budget holds it beside two experts for the shortest steps. `unit`: for these, with
// dense_there.
// Error(kUnsupported) if it is to be there, and cannot.
struct DensePlace {
  bool there = false;
  std::string why;
};
DensePlace dense_place(const BudgetParts& parts, const UnitParts& unit, DenseView view);

// The most tokens of a step, at most `chunk`, for which the dense part's activations take a small share of
// the device's memory; at least the fewest that a step must have.
std::size_t device_chunk(const BudgetParts& parts, UnitParts unit, DenseView view, std::size_t chunk);

}  // namespace sluice::engine
