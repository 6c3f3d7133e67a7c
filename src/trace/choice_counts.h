// How often each expert is chosen in recorded routing: what is popular there.
#pragma once

#include <functional>
#include <vector>

#include "trace/routing_trace.h"

namespace sluice::trace {

// By sparse layer and expert, over all tokens. Errors as RoutingTrace::next; Error(kInterrupted) when `stop`,
// which is asked now and then, returns true.
std::vector<std::vector<double>> choice_counts(RoutingTrace& trace, const std::function<bool()>& stop = {});

}  // namespace sluice::trace
