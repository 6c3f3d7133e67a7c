// A run that a LayerDecider decides in tests: its names, and the policies that are made of them. Production
// code does not include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "experts/cache/cache_policies.h"
#include "experts/combination.h"
#include "experts/core/ids.h"
#include "experts/layer_policies.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/registry.h"
#include "experts/routing/router_config.h"
#include "experts/routing/testing.h"

namespace sluice::experts {

// Experts of one layer are alike; deeper layers have larger ones.
class LayerSizes final : public ExpertSizes {
 public:
  explicit LayerSizes(Family family) : family_(family) {}
  ExpertBytes bytes(ExpertId id) const override {
    const Bytes unit = 2 + id.layer;
    if (family_ == Family::kSliced) return {.msb = 2 * unit, .lsb = unit};
    return {.full = 4 * unit, .sm = 2 * unit, .exp = unit};
  }

 private:
  Family family_;
};

// One run to be decided.
struct DeciderSetting {
  static constexpr std::uint32_t kLayers = 3;
  static constexpr Parts kSlices = Part::kMsb | Part::kLsb;

  Family family = Family::kSplit;
  const CachePolicy* cache = nullptr;
  std::string_view router, prefetch;
  PrecisionMode precision = PrecisionMode::kFull;
  ConstraintMode constraint = ConstraintMode::kNone;
  bool limits_loss = false, by_layer = false, whole_layers = false;
  bool given = false;  // the routing is given, as in a replay
  std::uint32_t experts = 8, top_k = 2;
  std::uint64_t seed = 0;

  std::string name() const {
    std::ostringstream text;
    text << cache->name << ' ' << router << ' ' << precision_name(precision) << ' '
         << constraint_name(constraint) << ' ' << prefetch << (limits_loss ? " loss" : "")
         << (by_layer ? " by layer" : "") << (whole_layers ? " whole layers" : "") << (given ? " given" : "")
         << " of " << experts << ", seed " << seed;
    return text.str();
  }
};

inline SlicesConfig slices_of(const DeciderSetting& setting) {
  std::mt19937_64 random(setting.seed);
  SlicesConfig slices;
  const bool low = setting.precision == PrecisionMode::kLow;
  if (!setting.limits_loss || low) slices.rules.lsb_miss = static_cast<LsbMiss>(random() % 3);
  if (setting.limits_loss && !low) slices.rules.lsb_miss = LsbMiss::kFetch;
  slices.initial = static_cast<InitialSlices>(random() % 4);
  if (low && slices.initial == InitialSlices::kLastLayer) slices.initial = InitialSlices::kEmpty;
  slices.warmup.rho = low ? 0 : .5;
  return slices;
}

inline bool is_allowed(const DeciderSetting& setting) {
  const SlicesConfig slices = slices_of(setting);
  const Named<RouterPolicy> router(setting.router);
  try {
    check_combination({.family = setting.family,
                       .routers = {&router, 1},
                       .cache = setting.cache,
                       .precision = setting.precision,
                       .constraint = setting.constraint,
                       .prefetch = setting.prefetch,
                       .whole_layers = setting.whole_layers,
                       .slices = &slices,
                       .loss_limited = setting.limits_loss,
                       .residual = true,
                       .transitions = true});
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return false;
  }
}

inline LossContract contract_of_settings() {
  LossContract contract;
  contract.model.precision = contract.model.precision_upper = LossCurve({{1, .1}});
  contract.model.routing = contract.model.routing_upper = LossCurve({{1, .2}});
  contract.model.both = contract.model.both_upper = 1;
  contract.limit = .04;
  contract.planned_low = .1;
  return contract;
}

inline std::unique_ptr<Cache> cache_of(const DeciderSetting& setting, Bytes capacity, Bytes largest) {
  CacheConfig config;
  const bool packed = setting.family == Family::kSplit && setting.seed % 2 == 0;
  config.keep = packed ? Part::kSm | Part::kExp : Parts(Part::kFull);
  if (setting.family == Family::kSliced)
    config.keep = setting.cache->sliced ? setting.kSlices : least_parts(setting.precision);
  config.seed = setting.seed;
  config.slices = slices_of(setting);
  if (setting.cache->pooled) {
    const auto slots = static_cast<std::uint32_t>(capacity / (largest * setting.kLayers));
    config.pools.slots = {{.f = (slots + 3) / 4, .c = (slots + 2) / 4, .s = (slots + 1) / 4, .e = slots / 4}};
    config.pools.rules.delta = setting.seed % 3;
  }
  return make_cache(setting.cache->name, config);
}

// What followed what in another text: anything.
inline ExpertTransitions random_transitions(const DeciderSetting& setting) {
  std::mt19937_64 random(setting.seed + 3);
  ExpertTransitions transitions(setting.kLayers, setting.experts);
  for (int token = 0; token < 30; ++token) {
    const std::uint16_t here[] = {static_cast<std::uint16_t>(random() % setting.experts)},
                        next[] = {static_cast<std::uint16_t>(random() % setting.experts)};
    transitions.add(static_cast<std::uint32_t>(random() % (setting.kLayers - 1)), here, next);
  }
  return transitions;
}

inline LayerPolicies policies_of(const DeciderSetting& setting, const ExpertSizes& sizes) {
  std::mt19937_64 random(setting.seed + 1);
  LayerPolicies policies;
  policies.precision = {setting.precision, {.theta = .45}};
  if (setting.limits_loss) policies.guard = std::make_unique<LossGuard>(contract_of_settings());
  if (setting.family == Family::kSliced || setting.constraint != ConstraintMode::kNone) {
    ConstraintConfig config{
        .mode = setting.constraint, .limit = .1, .lambda = .3, .top_j = 1, .exempt_steps = 2};
    config.low = setting.family == Family::kSliced ? least_parts(setting.precision) : Parts(Part::kFull);
    config.high = setting.family == Family::kSliced ? setting.kSlices : Parts(Part::kFull);
    policies.constraint = std::make_unique<MissConstraint>(config, sizes, policies.guard.get());
  }
  static std::deque<RoutingScript> scripts;  // for all policies, which do not own them
  static std::deque<ExpertTransitions> transitions;
  transitions.push_back(random_transitions(setting));
  scripts.push_back(random_script(setting.kLayers, setting.experts, setting.top_k, setting.seed));
  if (!setting.given)
    policies.router = find_router(setting.router)
                          .make({.select = {.top_k = setting.top_k},
                                 .combine = {.renormalise = true},
                                 .constraint = policies.constraint.get(),
                                 .script = &scripts.back()});
  policies.placement = make_cpu_placement();
  policies.prefetch = find_prefetch(setting.prefetch).make({.seed = 7, .transitions = &transitions.back()});
  policies.whole_layers = setting.whole_layers;
  const ExpertBytes largest = sizes.bytes({setting.kLayers - 1, 0});
  const Bytes each = std::max(largest.full, largest.msb + largest.lsb);
  const Bytes capacity = random() % (each * setting.experts * setting.kLayers);
  for (std::uint32_t i = 0; i < (setting.by_layer ? setting.kLayers : 1); ++i)
    policies.residencies.push_back(
        std::make_unique<Residency>(cache_of(setting, capacity, each), sizes, capacity));
  return policies;
}

}  // namespace sluice::experts
