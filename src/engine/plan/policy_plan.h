// The policies that options ask for, as rows of the registry: the first part of an EnginePlan, which can also
// be had before a model is open.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/plan/options.h"
#include "experts/cache/cache_policies.h"
#include "experts/core/part_rules.h"
#include "experts/device_presets.h"
#include "experts/presets.h"
#include "experts/registry.h"

namespace sluice::engine {

// The policies of a run. Rows of the registry, never null.
struct PolicyPlan {
  const experts::Preset* preset = nullptr;
  const experts::RouterPolicy* router = nullptr;
  const experts::CachePolicy* cache = nullptr;
  const experts::SchedulerPolicy* scheduler = nullptr;
  const experts::PrefetchPolicy* prefetch = nullptr;
  const experts::PlacementPolicy* placement = nullptr;
  // Without a device all of these are null, or as they are here.
  const experts::CachePolicy* device_cache = nullptr;
  const experts::DevicePreset* device_preset = nullptr;  // null: none was named
  experts::WorkloadConfig device_cache_rules = {};
  // Places steps that have at least `prefill_from` tokens of prompts; null: `placement` places them, too.
  const experts::PlacementPolicy* prefill_placement = nullptr;
  std::uint32_t prefill_from = 1;
  std::optional<experts::Tiers> tiers = {};  // empty: as experts::usual_tiers() says, once memory is divided
  bool device_may_rest = false;  // nobody has said what it is to do: it is left alone where it does not help
  experts::PrecisionRule precision;  // kFull: no slices
  experts::ConstraintConfig limits;
  experts::CacheAwareRules cache_aware;
  experts::SmoeRules smoe;
  experts::SlicesConfig slices;
  std::optional<experts::LossContract> contract;
  std::optional<experts::LossModel> routing_losses;      // as in EngineOptions
  std::shared_ptr<const experts::RoutingScript> script;  // for the router recorded, else null
  std::shared_ptr<const GateResidual> residual;          // as in EngineOptions
  // Nobody has chosen the cache, and it is one that learns: where nothing ever leaves, there is nothing to
  // learn.
  bool learns_unasked = false;
  // Nobody has chosen the prefetch: it is `stream`, or dali-residual …
  bool prefetch_is_free = false;
  bool prefetch_by_calibration = false;  // … as the residual decided
  experts::Parts kept;                   // parts of an expert that caches keep

  std::string_view preset_name() const { return device_preset ? device_preset->name : preset->name; }
  // "greedy", or "layer-split (device in prompts of 32 tokens or more)".
  std::string placement_text() const;
  // Tokens that are decoded one by one are computed otherwise than in a prompt: by another precision or other
  // experts.
  bool decodes_otherwise() const;
  // Results depend on earlier computation: through a router, a limit on misses or a precision that looks at
  // what happens to be in memory. Such an evaluation cannot be continued with the same results.
  bool depends_on_memory() const;
  // "recorded from FILE (how it is fitted to the model)", as every output names it; empty where the model's
  // routers decide.
  std::string played() const;
};

// Rows for what `options` leave blank, by the preset. `auto` is zipmoe-plus where there are packed states,
// otherwise whole experts in the cache `reuse`, beside a device `lru`. Leaves out `kept` and the views of
// `limits`, which resolve() adds. Error(kUsage).
PolicyPlan choose_policies(const EngineOptions& options, bool packed_states, bool sliced);
// For a model that nobody has opened yet: in slices, if options or preset choose a precision.
PolicyPlan choose_policies(const EngineOptions& options);
// Error(kUsage) for policies that do not go with each other or with experts stored as `family`.
void check_policies(const PolicyPlan& policies, experts::Family family);

}  // namespace sluice::engine
