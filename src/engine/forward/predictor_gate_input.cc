// The next layer's router sees what this layer's router saw: the normed stream, but by this layer's norm.
// HybriMoE's prediction; SPEC §3.4, variant `raw`. Nothing changes once the layer has been computed.
#include "engine/forward/predictor.h"

namespace sluice::engine {
namespace {

class GateInputPredictor final : public Predictor {
 public:
  explicit GateInputPredictor(const PredictorTools& tools) : tools_(tools) {}

  experts::ScoresView predict(std::size_t layer, model::Role, const Step& step, const Workspace& w,
                              bool) override {
    return tools_.scores.score(next_sparse(tools_.config, layer), w.normed, step, w);
  }
  kernels::Floats inputs(const Workspace& w) const override { return w.normed; }

 private:
  const PredictorTools tools_;
};

}  // namespace

std::unique_ptr<Predictor> make_gate_input_predictor(const PredictorTools& tools) {
  return std::make_unique<GateInputPredictor>(tools);
}

}  // namespace sluice::engine
