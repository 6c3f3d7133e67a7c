// What the routers of a model say about the tokens of a step: logits and scores of all experts of a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/forward/dense_weights.h"
#include "engine/forward/workspace.h"
#include "engine/session/step.h"
#include "experts/routing/router.h"
#include "kernels/context.h"
#include "model/config.h"

namespace sluice::engine {

// Results view w.router_logits and w.scores until the next call. Thread-compatible. All references must
// outlive it.
class RouterScores {
 public:
  RouterScores(const kernels::Context& kernels, const model::ModelConfig& config, const DenseWeights& weights)
      : kernels_(kernels), config_(config), weights_(weights) {}

  // Scores of this layer, for w.normed and w.arranged.
  experts::ScoresView of_layer(std::size_t layer, const Step& step, const Workspace& w);
  // Scores that this layer's router gives other rows, (T, d), normed as it expects: logits and scores alone.
  // Uses w.gathered.
  experts::ScoresView score(std::size_t layer, const float* normed, const Step& step, const Workspace& w);

 private:
  const kernels::Context& kernels_;
  const model::ModelConfig& config_;
  const DenseWeights& weights_;
  std::vector<experts::SequenceSpan> spans_;  // of the event
};

}  // namespace sluice::engine
