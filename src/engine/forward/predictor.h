// Predicts what the router of the next sparse layer will say, while this layer's experts are still on their
// way: prefetch policies name the predictor that they want (experts::PredictorKind). SPEC §2.3, §3.4.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/models.h"
#include "engine/forward/router_scores.h"
#include "engine/session/step.h"
#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/residual_vectors.h"
#include "experts/routing/router.h"
#include "kernels/ops/ops.h"
#include "model/config.h"

namespace sluice::engine {

// Names of what the engine predicts about the next sparse layer's router while a layer is computed: its norm
// and router see the residual stream without what this layer's experts add, and later with it.
// With the next two, the next layer's router sees what this layer's router saw, alone or with a measured mean
// difference added.
inline constexpr std::string_view kStream = "stream", kStreamAndLayer = "stream+layer", kGateInput = "raw",
                                  kGateInputAndResidual = "residual";
// With this one, the layers up to the next sparse one are computed ahead, from as much of this layer as is
// known.
inline constexpr std::string_view kPartialState = "partial";

// Thread-compatible.
class Predictor {
 public:
  virtual ~Predictor() = default;
  // The scores of the next sparse layer for the tokens of the step, valid until RouterScores makes others.
  // `norm`: the norm before this layer's router. `computed`: this layer's branch is complete in w.branch, and
  // not yet added to w.hidden. Uses w.expert_rows and w.gathered. REQUIRES: there is a next sparse layer.
  virtual experts::ScoresView predict(std::size_t layer, model::Role norm, const Step& step,
                                      const Workspace& w, bool computed) = 0;
  // (T, d): what the next router was predicted to see. Valid behind predict(), until somebody uses w.
  virtual kernels::Floats inputs(const Workspace& w) const = 0;
};

// How the layers ahead of the running one are computed, and where: in WorkspaceBuffer::ahead().
struct LayersAhead {
  models::LayerForward forward;
  const WorkspaceBuffer& workspace;
};

// What predictors compute with. All must outlive them.
struct PredictorTools {
  kernels::Ops& ops;
  const model::ModelConfig& config;
  const DenseWeights& weights;
  RouterScores& scores;
  const experts::ResidualVectors* residual = nullptr;  // null: nobody has measured it
  std::optional<LayersAhead> ahead = {};               // empty: none is computed ahead
};

// Each in a file of its own.
std::unique_ptr<Predictor> make_stream_predictor(const PredictorTools& tools);
std::unique_ptr<Predictor> make_gate_input_predictor(const PredictorTools& tools);
std::unique_ptr<Predictor> make_residual_predictor(const PredictorTools& tools);  // REQUIRES: a residual

// Sees as much of the running layer as is known: the shared experts' output in w.branch, and some of the
// rows of w.expert_rows, weighted, ascending by expert for each token. Uses no other of these rows.
class PartialPredictor : public Predictor {
 public:
  // Before predict(). `row_count`: of w.expert_rows in all. The rows must live until predict() returns.
  virtual void know(std::span<const kernels::op::WeightedRow> rows, std::size_t row_count) = 0;
};
std::unique_ptr<PartialPredictor> make_partial_predictor(
    const PredictorTools& tools);  // REQUIRES: layers ahead

// All that these tools can make. Thread-compatible.
class Predictors {
 public:
  explicit Predictors(const PredictorTools& tools)
      : stream_(make_stream_predictor(tools)),
        gate_input_(make_gate_input_predictor(tools)),
        residual_(tools.residual != nullptr ? make_residual_predictor(tools) : nullptr),
        partial_(tools.ahead ? make_partial_predictor(tools) : nullptr) {}
  bool has_residual() const { return residual_ != nullptr; }
  PartialPredictor* partial() { return partial_.get(); }  // null: it is not here
  Predictor& operator[](experts::PredictorKind kind);     // REQUIRES: neither kNone nor one that is not here

 private:
  std::unique_ptr<Predictor> stream_, gate_input_, residual_;
  std::unique_ptr<PartialPredictor> partial_;
};

// The layer that predictors predict. REQUIRES: a sparse layer behind `layer`.
std::size_t next_sparse(const model::ModelConfig& config, std::size_t layer);

}  // namespace sluice::engine
