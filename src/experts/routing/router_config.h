// The routers' factories and their one configuration. registry.h finds them by name.
#pragma once

#include <cstdint>
#include <memory>

#include "experts/routing/router.h"
#include "experts/routing/smoe_rules.h"

namespace sluice::experts {

// Rules of the routers that prefer resident experts (SPEC §4.5). The defaults of lambda and p are ours.
struct CacheAwareRules {
  double lambda = 0.5;      // cache-prior: share of a token's range of logits that is added. [0, 1]
  double p = 0.9;           // cumsum: probability that the considered experts must reach. [0, 1]
  std::uint32_t top_j = 0;  // a token's best experts, which are treated as resident

  void validate() const;  // Error(kUsage)
  // Checks the rules for a layer of so many experts; Error(kUsage) also for a top_j above them.
  void validate_for(std::uint32_t experts) const;
};

class LossGuard;       // loss_guard.h
class MissConstraint;  // miss_constraint.h
class RoutingScript;   // routing_script.h

struct RouterConfig {
  SelectRule select = {};
  CombineRule combine = {};
  CacheAwareRules cache_aware = {};
  SmoeRules smoe = {};
  // Non-owning, must outlive the router; null: no constraint. A constraint with a lambda of its own overrides
  // the one of the rules.
  MissConstraint* constraint = nullptr;
  // Limits what smoe may lose; under a constraint that one asks it. Non-owning, must outlive the router;
  // null: no limit.
  const LossGuard* guard = nullptr;
  // For recorded, which requires it: what it plays, fitted to the model. Non-owning, must outlive the router.
  const RoutingScript* script = nullptr;
};

std::unique_ptr<Router> make_exact_router(const RouterConfig& config);
std::unique_ptr<Router> make_cache_prior_router(const RouterConfig& config);
std::unique_ptr<Router> make_cumsum_router(const RouterConfig& config);
// Error(kUsage) under a constraint, (kUnsupported) for a model whose experts have a limited capacity.
std::unique_ptr<Router> make_smoe_router(const RouterConfig& config);
// Error(kUsage) without a script, (kUnsupported) for a model whose experts have a limited capacity.
std::unique_ptr<Router> make_recorded_router(const RouterConfig& config);

}  // namespace sluice::experts
