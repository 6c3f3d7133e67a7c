// Measures an engine::Calibration: computes the same text with the exact model, and with the store in slices
// at several precisions and with growing shares of its routing replaced, all of these at once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/calibration.h"
#include "eval/stepped_windows.h"

namespace sluice::eval {

struct CalibrateOptions {
  engine::EngineOptions engine;  // memory, threads, arithmetic and reads, for all runs
  SteppedWindows windows;
  std::vector<double> thetas = {.2, .35, .5};
  // For routing: score mass that may be lost per token of a layer.
  std::vector<double> ceilings = {.01, .04, .16};
  // These are measured as well where the curve needs them.
  std::vector<double> more_thetas = {.1, .15, .25, .3, .4, .45, .6, .8};
  std::vector<double> more_ceilings = {.005, .02, .08};
  std::vector<double> caches = {.25, .5};  // shares of all experts; precision is measured with the first
  // For both together, with the first cache.
  struct Both {
    double theta = 0, ceiling = 0;
  };
  std::vector<Both> both = {{.25, .02}, {.35, .04}, {.35, .08}};
  std::function<bool(std::size_t done, std::size_t all)> on_progress = {};  // tokens; false stops
  std::string state = {};            // file that keeps each window that is done (eval/state.h)
  std::optional<double> hours = {};  // behind which no window begins; empty: any time
};

// Computes as many windows of the text as are needed (growing_windows.h). Every measurement of the same text
// is the same, if time does not end it. Error(kUnsupported) for a store without slices; (kInvalid) for a
// reference that is not the model it was packed from, or is itself rounded, and for a text of fewer than two
// windows; (kInterrupted); errors of State.
engine::Calibration measure_calibration(const store::Checkpoint& checkpoint, const model::Model& model,
                                        const store::Checkpoint& reference,
                                        const model::Model& reference_model,
                                        std::span<const tokenizer::TokenId> tokens,
                                        const CalibrateOptions& options);

}  // namespace sluice::eval
