// Measures an engine::Calibration: computes the same text with the exact model, and with the store in slices
// at several precisions and with growing shares of its routing replaced.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/calibration.h"
#include "eval/stepped_windows.h"

namespace sluice::eval {

struct CalibrateOptions {
  engine::EngineOptions engine;  // memory, threads, arithmetic and reads, for all runs
  SteppedWindows windows;
  std::vector<double> thetas = {.1, .15, .2, .25, .3, .35, .4, .45, .5};
  // For routing: score mass that may be lost per token of a layer.
  std::vector<double> ceilings = {.005, .01, .02, .04, .08, .16};
  std::vector<double> caches = {.25, .5};  // shares of all experts; precision is measured with the first
  // For both together, with the first cache.
  struct Both {
    double theta = 0, ceiling = 0;
  };
  std::vector<Both> both = {{.25, .02}, {.35, .04}, {.35, .08}};
  std::function<bool(std::size_t done, std::size_t all)> on_progress = {};  // tokens; false stops
  // File that keeps each finished way of computing the text (eval/state.h).
  std::string state = {};
};

// Error(kUnsupported) for a store without slices; (kInvalid) for a reference that is not the model it was
// packed from, or is itself rounded, and for a text of fewer than two windows; (kInterrupted); errors of
// State.
engine::Calibration measure_calibration(const store::Checkpoint& checkpoint, const model::Model& model,
                                        const store::Checkpoint& reference,
                                        const model::Model& reference_model,
                                        std::span<const tokenizer::TokenId> tokens,
                                        const CalibrateOptions& options);

}  // namespace sluice::eval
