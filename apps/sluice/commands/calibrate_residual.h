// `sluice calibrate` for prefetching: by how much the gate inputs of neighbouring layers differ, for
// prefetches that follow it.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::app {

struct EngineFlags;

struct ResidualRequest {
  std::string file;    // the text, as typed
  std::string output;  // empty: the store keeps it
  std::int64_t tokens = 0, window = 0;
};
// Prints a table, or one JSON object.
void calibrate_residual(const EngineFlags& flags, const ResidualRequest& request);

}  // namespace sluice::app
