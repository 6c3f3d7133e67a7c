// Options of models in slices: their names in flags and decision logs, and defaults that follow from the
// precision.
#pragma once

#include <string_view>

#include "experts/cache/cache_policies.h"
#include "experts/routing/precision.h"

namespace sluice::experts {

// Conversions in both directions; unknown names throw Error(kUsage) that lists the known ones.
LsbMiss lsb_miss_rule(std::string_view name);  // fetch, skip, fetch_if_budget
std::string_view lsb_miss_name(LsbMiss rule);
InitialSlices initial_slices(std::string_view name);  // pcw, empty, last-layer, random
std::string_view initial_slices_name(InitialSlices initial);

// Default of WarmupRules::rho: at high precision every LSB is wanted, at low precision no LSB.
double usual_rho(PrecisionMode precision);

}  // namespace sluice::experts
