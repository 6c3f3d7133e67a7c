// What a running model is computed with: the parts of an engine that passes and encoders share.
#pragma once

#include <cstddef>
#include <functional>

#include "base/error.h"
#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/embedding.h"
#include "engine/forward/layer_run.h"
#include "engine/forward/moe_block.h"
#include "engine/session/rope_table.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/expert_store.h"
#include "kernels/ops/ops.h"
#include "model/config.h"

namespace sluice::engine {

// Non-owning. Copies must not outlive the engine.
struct ForwardParts {
  kernels::Ops& ops;
  const model::ModelConfig& config;
  const DenseWeights& weights;
  const RopeTable& rope;
  const WorkspaceBuffer& workspace;
  Embedding& embedding;
  MoeBlock& moe;
  fetch::ExpertStore& experts;
  Statistics& statistics;
  std::size_t chunk;  // most tokens of a step
  // Called with the error of a step before the error goes on; may throw a better one.
  std::function<void(const Error&)> on_error;

  // `rows`: whose residual stream (WorkspaceBuffer::get).
  LayerRun run(const Step& step, std::size_t rows = 0) const {
    return LayerRun(ops, config, weights, moe, workspace, step, rows);
  }
};

}  // namespace sluice::engine
