// The simulated rows of SPEC §6.1: recorded and synthetic routing of the paper's model shapes on a virtual
// clock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/profile.h"

namespace sluice::reproduce {

struct ZipmoeReplaySettings {
  std::string trace;  // routing of DeepSeek-V2-Lite; empty: none is available
  std::vector<std::size_t> batches;
  std::function<bool()> stop = {};                        // may be empty
  std::function<void(const std::string&)> on_stage = {};  // may be empty
};

// Each value is "decoder-only; encoder-decoder", in the order of the paper's figures.
struct ZipmoeReplay {
  std::string f1, f7, f8, f9;
  std::string f10;         // decoder-only
  std::string conditions;  // how the values came about
  std::string missing;     // why the decoder-only half is "n/a"; empty if it is there
  std::string played;      // RoutingTrace::played() of the trace
  Json data;
};

// Error(kInvalid) for a trace of another model; otherwise errors as open_trace.
void check_zipmoe_trace(const std::string& path);

// Scales the decoding and computing times of `measured` to the paper's models. Error(kInvalid) for a trace of
// another model; otherwise errors as open_trace; Error(kInterrupted). REQUIRES: the profile's experts are
// stored split.
ZipmoeReplay replay_zipmoe(const ZipmoeReplaySettings& settings, const engine::Profile& measured);

}  // namespace sluice::reproduce
