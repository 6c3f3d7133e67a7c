// A text computed in one way, step by step: how well each window of it was predicted, and what the way
// changed and read on average.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/plan/calibration_text.h"
#include "eval/stepped_windows.h"

namespace sluice::eval {

// Means are over the tokens of sparse layers of decode steps.
struct ScoredWay {
  std::vector<WindowScore> windows;
  double low = 0, mass = 0;    // low share; score mass lost
  double bytes_per_token = 0;  // expert bytes read per token of a decode step
};

Json to_json(const ScoredWay& scored);
// Reads the scores of `windows` windows. Error(kInvalid).
ScoredWay scored_way_from_json(const Json& json, const std::string& name, std::size_t windows);

// As score_windows(), on an engine that has computed nothing yet. Without `steps` the means stay 0.
ScoredWay score_way(engine::Engine& engine, std::span<const tokenizer::TokenId> tokens,
                    const SteppedWindows& windows, bool steps,
                    const std::function<bool(std::size_t done)>& on_progress);

engine::CalibrationText calibration_text(std::span<const tokenizer::TokenId> tokens,
                                         const SteppedWindows& windows);

}  // namespace sluice::eval
