// Measures an engine::SmoeCalibration: computes the same text with the router exact, and with smoe at growing
// alphas, with memory for some of the experts, all of these at once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/smoe_calibration.h"
#include "eval/stepped_windows.h"

namespace sluice::eval {

struct MeasureSmoeOptions {
  engine::EngineOptions engine;  // memory, threads, arithmetic and reads, for all runs
  SteppedWindows windows;
  std::vector<double> alphas = {0, .1, .25, .35, .6};  // the first is 0, which is the router exact
  std::vector<double> caches = {.25, .5};              // shares of all experts
  std::function<bool(std::size_t done, std::size_t all)> on_progress = {};  // tokens; false stops
  std::string state = {};            // file that keeps each window that is done (eval/state.h)
  std::optional<double> hours = {};  // behind which no window begins; empty: any time
};

// Computes as many windows of the text as are needed (growing_windows.h). Caches are `lru`, and nothing is
// read ahead, so that every measurement of the same text is the same, if time does not end it.
// Error(kUnsupported) for a model in slices, without experts, or with an encoder, and where the router smoe
// is refused; (kInvalid) for a text of fewer than two windows; (kInterrupted); errors of State.
engine::SmoeCalibration measure_smoe(const store::Checkpoint& checkpoint, const model::Model& model,
                                     std::span<const tokenizer::TokenId> tokens,
                                     const MeasureSmoeOptions& options);

}  // namespace sluice::eval
