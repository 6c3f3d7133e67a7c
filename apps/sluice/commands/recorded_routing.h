// Recorded routing in the form that plans take, checked to come from the planned model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::app {

struct RecordedRouting {
  std::vector<double> ranks;              // f of SPEC §1.8
  std::optional<std::uint64_t> identity;  // the model's, if the trace has it
  std::string played = {};                // RoutingTrace::played()
};

// Error(kInvalid) if the trace at `path` comes from a model of another shape; otherwise errors as
// trace::recorded_ranks. Says on standard error where the trace was played (streams/played_routing.h).
RecordedRouting read_routing(const std::string& path, const model::ModelConfig& config);
// Error(kInvalid) if the routing comes from another model.
void check_identity(const RecordedRouting& routing, const std::string& path, const engine::Engine& engine);

}  // namespace sluice::app
