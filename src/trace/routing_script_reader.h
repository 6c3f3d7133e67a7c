// Reads a trace of any kind as routing that another model can play.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "experts/routing/routing_script.h"
#include "experts/routing/routing_tiles.h"
#include "trace/routing_trace.h"

namespace sluice::trace {

// Reads `trace` to its end and fits it to `model` (RoutingTiles; `layers` as there). Sequences are those of
// the trace, in the order in which they appear; in a trace that does not mark them, each prompt begins one.
// Where the trace was played itself, the script's source says so.
// The last step of a trace that was cut off is left out. Error(kInvalid) for a trace without a whole step,
// and for one whose script would take more than kMostStepBytes; (kUsage) as RoutingTiles; otherwise as
// RoutingTrace::next; (kInterrupted) when `stop`, which is asked now and then, returns true.
std::shared_ptr<const experts::RoutingScript> read_routing_script(RoutingTrace& trace,
                                                                  const experts::RoutingShape& model,
                                                                  std::span<const std::uint32_t> layers = {},
                                                                  const std::function<bool()>& stop = {});

}  // namespace sluice::trace
