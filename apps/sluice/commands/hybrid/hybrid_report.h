// What a replay with a host and a device found, for people and for scripts.
#pragma once

#include <vector>

#include "base/json/json.h"
#include "commands/hybrid/hybrid_rows.h"
#include "lab/replay/routed_steps.h"

namespace sluice::app {

Json hybrid_json(const HybridRow& row);
void print_hybrid(const lab::RoutedSteps& recorded, const HybridRequest& request,
                  const std::vector<lab::HybridMachine>& machines, const std::vector<HybridRow>& rows);

}  // namespace sluice::app
