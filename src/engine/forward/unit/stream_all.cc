#include "engine/forward/unit/stream_all.h"

namespace sluice::engine {

void stream_all(const experts::LayerDecision& decision, experts::DevicePlan& plan) {
  plan.clear();
  for (std::size_t i = 0; i < decision.assignment.unit.size(); ++i)
    if (decision.assignment.unit[i] == experts::Unit::kDevice)
      plan.uses.push_back({.id = decision.experts[i], .tokens = decision.tokens[i]});
}

}  // namespace sluice::engine
