#include "model/pack_plan.h"

namespace sluice::model {

store::PackPlan pack_plan(const Model& model) {
  store::PackPlan plan{.architecture = model.config.model_type, .experts = {}};
  plan.experts.reserve(model.experts.size());
  for (const ExpertPieces& expert : model.experts)
    plan.experts.push_back({expert.layer, expert.index, expert.all()});
  return plan;
}

}  // namespace sluice::model
