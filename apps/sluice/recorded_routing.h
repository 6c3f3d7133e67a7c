// Recorded routing as plans take it, checked to be of the model that is planned for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/config.h"

namespace sluice::app {

struct RecordedRouting {
  std::vector<double> ranks;              // f of SPEC §1.8
  std::optional<std::uint64_t> identity;  // of the model, if the trace says it
};

// Error(kInvalid) if the trace at `path` is of a model of another shape; as trace::recorded_ranks.
RecordedRouting read_routing(const std::string& path, const model::ModelConfig& config);
// Error(kInvalid) if it is of another model.
void check_identity(const RecordedRouting& routing, const std::string& path, const engine::Engine& engine);

}  // namespace sluice::app
