// What the routers of a model say about the tokens of a step: logits and scores of all experts of a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/session/step.h"
#include "experts/routing/router.h"
#include "kernels/context.h"
#include "kernels/ops/ops.h"
#include "model/config.h"

namespace sluice::engine {

// Results view w.host.router_logits and w.host.scores until the next call. Thread-compatible. All references
// must outlive it.
class RouterScores {
 public:
  // `host`: kernels of the host, where scores are made of logits.
  RouterScores(kernels::Ops& ops, const kernels::Context& host, const model::ModelConfig& config,
               const DenseWeights& weights)
      : ops_(ops), host_(host), config_(config), weights_(weights) {}

  // Scores of this layer, for w.normed and w.arranged.
  experts::ScoresView of_layer(std::size_t layer, const Step& step, const Workspace& w);
  // Scores that this layer's router gives other rows, (T, d), normed as it expects: logits and scores alone.
  // Uses w.gathered.
  experts::ScoresView score(std::size_t layer, kernels::Floats normed, const Step& step, const Workspace& w);

 private:
  kernels::Ops& ops_;
  const kernels::Context& host_;
  const model::ModelConfig& config_;
  const DenseWeights& weights_;
  std::vector<experts::SequenceSpan> spans_;  // spans of the event
};

}  // namespace sluice::engine
