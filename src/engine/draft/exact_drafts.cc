#include "engine/draft/exact_drafts.h"

#include <fmt/format.h>

namespace sluice::engine {

std::string why_no_drafts(const PolicyPlan& policies, const model::ModelConfig& config) {
  if (policies.router->lossy) return fmt::format("with the router {}", policies.router->name);
  if (policies.limits.mode != experts::ConstraintMode::kNone) return "with a limit on misses";
  if (policies.decodes_otherwise() || policies.depends_on_memory())
    return fmt::format("at the precision {}", experts::precision_name(policies.precision.mode));
  if (config.moe.capacity != 0 || config.has_encoder())
    return "since the model's experts take a limited number of tokens";
  // Its room is for one token of each sequence.
  if (policies.prefetch->predictor == experts::PredictorKind::kPartial)
    return fmt::format("with the prefetch {}", policies.prefetch->name);
  return "";
}

}  // namespace sluice::engine
