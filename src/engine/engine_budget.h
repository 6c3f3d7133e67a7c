// Divides the budget of one engine before anything is loaded: what its model, its plan and this machine need
// goes to plan_memory().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/matrix_format.h"
#include "device/accountant.h"
#include "device/choice/make_device.h"
#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_choice.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "fetch/memory/expert_store.h"
#include "kernels/products/scratch.h"

namespace sluice::engine {

// The parts of an engine on which its needs depend. All must outlive the division.
struct BudgetParts {
  const store::Checkpoint& checkpoint;
  const model::Model& model;
  const EnginePlan& plan;
  const fetch::ExpertStore& experts;
  const kernels::Context& kernels;
  std::span<const codec::MatrixFormat* const> dense_formats;  // formats of dense matrices, each once
  std::size_t logit_rows = 1;                                 // tokens whose logits are made at a time
  bool dense_there = false;           // dense weights and the key/value cache are on the device
  std::size_t most_chunk = SIZE_MAX;  // tokens of a step for which the device has room
  device::DeviceFacts device = {};    // facts about the plan's device
};

struct DividedBudget {
  MemoryPlan memory;
  DenseChoice dense;
  bool all_experts_fit = false;
};

// Error(kUnsupported) naming a format of the model for which there are no kernels.
void check_formats(const BudgetParts& parts);

WorkspaceShape workspace_shape(const BudgetParts& parts, std::size_t chunk);
// The most that products need beside their operands, for steps of `chunk` tokens.
kernels::ScratchShape scratch_shape(const BudgetParts& parts, DenseView dense, std::size_t chunk);

// `profile`: of this model and machine; may be null. Error(kBudget) if the budget is too small for the model,
// or for the caches that the plan asks for; Error(kUsage) for caches in which no part of an expert fits.
DividedBudget divide_budget(const BudgetParts& parts, Bytes budget, const Profile* profile);

// Bytes of the buffer in which the relative biases of one stack are spread out on their way to a device.
Bytes relative_bias_bytes(const model::ModelConfig& config, const EnginePlan& plan);

// Positions of the key/value cache of all sequences together.
std::size_t kv_rows(const EnginePlan& plan);

// How many caches the plan has: one for all sparse layers, or one for each.
std::size_t cache_count(const EnginePlan& plan, const model::ModelConfig& config);

}  // namespace sluice::engine
