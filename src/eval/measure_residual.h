// Measures an engine::GateResidual: the mean difference of the gate inputs of neighbouring sparse layers over
// most of a text, and how well it foretells the routing of the rest. DALI (eq. 10, 11; Table 8); SPEC §3.4.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "engine/plan/gate_residual.h"
#include "engine/plan/options.h"
#include "tokenizer/text/token_id.h"

namespace sluice::model {
struct Model;
}
namespace sluice::store {
class Checkpoint;
}

namespace sluice::eval {

struct ResidualOptions {
  engine::EngineOptions engine;  // memory, threads, arithmetic and reads
  std::size_t window = 256;      // tokens; each window of the text is a sequence of its own
  double held_out = 0.2;         // share of the windows, the last ones, that the mean does not see
  std::function<bool(std::size_t done, std::size_t all)> on_progress = {};  // tokens; false stops
};

// Routing is the model's own. The text is cut into windows of `window` tokens; what is left behind the last
// is not used. Sums are f64 in the order of the text. Error(kUnsupported) for a model without two sparse
// layers, or with an encoder; (kInvalid) for a text of fewer than three windows, which names kFile;
// (kInterrupted).
engine::GateResidual measure_residual(const store::Checkpoint& checkpoint, const model::Model& model,
                                      std::span<const tokenizer::TokenId> tokens,
                                      const ResidualOptions& options);

}  // namespace sluice::eval
