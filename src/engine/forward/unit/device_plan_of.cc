#include "engine/forward/unit/device_plan_of.h"

#include <algorithm>

namespace sluice::engine {

using experts::DeviceBytes;
using experts::Unit;

void device_plan_of(const experts::LayerDecision& decision, experts::DevicePlan& plan) {
  plan.clear();
  const auto tokens_of = [&](experts::ExpertId id) {
    return decision.tokens[static_cast<std::size_t>(std::ranges::lower_bound(decision.experts, id) -
                                                    decision.experts.begin())];
  };
  if (decision.device == nullptr) {
    for (std::size_t i = 0; i < decision.assignment.unit.size(); ++i)
      if (decision.assignment.unit[i] == Unit::kDevice)
        plan.uses.push_back({.id = decision.experts[i], .tokens = decision.tokens[i]});
    return;
  }
  const auto leaves = [&](experts::ExpertId id) {
    return std::ranges::find(decision.device->evicted, id, &experts::Eviction::id) !=
           decision.device->evicted.end();
  };
  for (const experts::Admission& hit : decision.device->hits)
    plan.uses.push_back({.id = hit.id,
                         .tokens = tokens_of(hit.id),
                         .from = DeviceBytes::kSlot,
                         .stays = !hit.parts.empty() && !leaves(hit.id)});
  for (const experts::Admission& miss : decision.device->misses)
    plan.uses.push_back(
        {.id = miss.id, .tokens = tokens_of(miss.id), .stays = !miss.parts.empty() && !leaves(miss.id)});
  plan.evicted = decision.device->evicted;
  for (const experts::Update& update : decision.device->updates) plan.updates.push_back({.id = update.id});
}

}  // namespace sluice::engine
