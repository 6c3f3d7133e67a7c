// The readers behind open_trace; each begins at the first byte of the file.
#pragma once

#include <memory>

#include "trace/routing_trace.h"
#include "trace/trace_input.h"

namespace sluice::trace {

std::unique_ptr<RoutingTrace> read_mrt_trace(std::unique_ptr<TraceInput> input);
std::unique_ptr<RoutingTrace> read_csv_trace(std::unique_ptr<TraceInput> input);

}  // namespace sluice::trace
