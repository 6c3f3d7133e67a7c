// The part of an engine that divides the memory of the host, and says where its dense part goes and whether a
// device and the host keep the same experts.
#include <algorithm>

#include "base/error.h"
#include "engine/device_budget.h"
#include "engine/engine_impl.h"
#include "engine/plan/unit_parts.h"
#include "experts/tier_choice.h"
#include "model/architecture.h"

namespace sluice::engine {

BudgetParts Engine::Impl::budget_parts() const {
  return {checkpoint_,    model_,      plan_,        *experts_,   kernels_,
          dense_formats_, logit_rows_, dense_there_, most_chunk_, device_facts_};
}

UnitParts Engine::Impl::unit_parts(DenseView view, std::size_t chunk) {
  const auto is_bias = [](const model::TensorSpec& tensor) { return is_expert_bias(tensor.role); };
  return {.kernels = kernels_,
          .low_view = plan_.low_view,
          .config = model_.config,
          .store = *experts_,
          .tokens = chunk,
          .scratch = scratch_shape(budget_parts(), view, chunk),
          .dense_there = dense_there_,
          .expert_biases = std::ranges::any_of(model_.dense, is_bias)};
}

void Engine::Impl::divide() {
  const auto divided = [&] { return divide_budget(budget_parts(), accountant_->budget(), given_profile()); };
  if (plan_.device && plan_.device->dense_on != DenseOn::kHost) {
    const DenseView view = plan_.dense == DenseForm::kPacked ? DenseView::kPacked : DenseView::kWords;
    BudgetParts parts = budget_parts();
    UnitParts unit = unit_parts(view, least_chunk(plan_.sequences));
    parts.dense_there = unit.dense_there = true;  // as they would be with the dense part there
    dense_place_ = dense_place(parts, unit, view);
    dense_there_ = dense_place_.there;
  }
  budget_ = divided();
  if (!dense_there_) return;
  const DenseView view = budget_.dense.view;
  most_chunk_ =
      device_chunk(budget_parts(), unit_parts(view, budget_.memory.chunk), view, budget_.memory.chunk);
  if (most_chunk_ < budget_.memory.chunk) budget_ = divided();
}

void Engine::Impl::divide_for(experts::TierChoice tiers) {
  tiers_ = tiers;
  // Making words first would take longer on any machine; but what a device gives back is kept as it comes.
  const bool as_kept = tiers.tiers == experts::Tiers::kExclusive && plan_.keep == Keep::kFull;
  experts_->compute_packed(experts_->facts().can_be_packed && !as_kept);
  divide();
}

void Engine::Impl::divide_by_tiers() {
  if (hooks_.second_unit) return divide_for({hooks_.second_unit->tiers});
  if (plan_.policies.tiers) return divide_for({*plan_.policies.tiers});
  divide_for({});
  if (!plan_.device) return;
  tiers_ = usual_tiers();
  if (tiers_.tiers == experts::Tiers::kInclusive || !experts_->facts().can_be_packed) return;
  try {
    divide_for(tiers_);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBudget) throw;
    divide_for({experts::Tiers::kInclusive, "the host's memory has no room to decode experts first"});
  }
}

experts::TierChoice Engine::Impl::usual_tiers() const {
  const std::size_t caches = cache_count(plan_, model_.config);
  return experts::usual_tiers({.cache = *plan_.policies.cache,
                               .sizes = experts_->sizes(),
                               .keep = plan_.policies.kept,
                               .layers = model_.config.sparse_layers(),
                               .experts = static_cast<std::uint32_t>(model_.config.moe.experts),
                               .by_layer = plan_.cache_scope == CacheScope::kLayer,
                               .capacity = budget_.memory.experts / caches,
                               .would_repack = plan_.keep == Keep::kPacked && !plan_.device->copies_packed});
}

}  // namespace sluice::engine
