// What an engine plans to do with its budget, as JSON.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json/json.h"
#include "engine/forward/dense/dense_weights.h"

namespace sluice::engine {
struct RunReport;
}

namespace sluice::app {

// How many experts a cache without pools holds, each with these parts in memory.
struct Held {
  std::string_view parts;
  std::size_t experts = 0;
  Bytes each = 0;
};
std::vector<Held> held_by_cache(const engine::RunReport& run);

std::string_view dense_view_name(engine::DenseView view);

// `positions`: tokens of prompt and answer that have room.
Json plan_json(const engine::RunReport& run, std::size_t positions);

}  // namespace sluice::app
