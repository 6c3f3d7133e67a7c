// Names what was played into a model whose routing a trace has (the router `recorded`): such choices are not
// the model's own, so no output about them goes without it. Each of these does nothing for an empty text.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"

namespace sluice::app {

// `played`: RoutingTrace::played() of the trace that the output is about.
void print_played(std::string_view played);              // "routing: recorded from FILE" on standard output
void add_played(Json& json, const std::string& played);  // `played`
// On standard error, for a trace of `path` that only says how often experts are used.
void tell_played(std::string_view path, std::string_view played);

}  // namespace sluice::app
