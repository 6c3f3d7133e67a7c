// The host's caches of a replay, as its settings make them.
#pragma once

#include <cstdint>
#include <string>

#include "experts/cache/cache_policies.h"
#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "lab/replay/replay.h"

namespace sluice::lab {

// `sizes` may be null when capacity counts experts. Error(kUsage), (kBudget) as replay(), but for the policy.
void check_caches(const ReplaySettings& settings, std::uint32_t layers, const trace::TraceSizes* sizes);

// Every expert counts 1, whatever its state. By bytes an expert in state E would count 0, which is why
// check_caches counts slots.
experts::EqualSizes experts_counted();

experts::CacheConfig config_of(const ReplaySettings& settings);  // an oracle's future aside
experts::DecisionSetting decision_setting(const ReplaySettings& settings, const std::string& played);

}  // namespace sluice::lab
