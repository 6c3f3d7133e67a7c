// The next layer's router sees what this layer's router saw, plus what the inputs of the two differ by on the
// average of a text. DALI (eq. 10, 11); SPEC §3.4. In f32: each component of the sum is one addition, rounded
// once, of the gate input and the stored mean; the router then scores it as any input. Nothing changes once
// the layer has been computed.
#include "base/error.h"
#include "engine/forward/predictor.h"
#include "kernels/ops/host_ops.h"

namespace sluice::engine {
namespace {

class ResidualPredictor final : public Predictor {
 public:
  explicit ResidualPredictor(const PredictorTools& tools) : tools_(tools) {
    SLUICE_CHECK(tools.residual != nullptr && tools.residual->layers == tools.config.sparse_layers() &&
                 tools.residual->width == tools.config.hidden);
  }

  experts::ScoresView predict(std::size_t layer, model::Role, const Step& step, const Workspace& w,
                              bool) override {
    const std::size_t d = tools_.config.hidden, tokens = step.tokens.size();
    const std::span<const float> residual =
        tools_.residual->of(tools_.config.sparse_index(static_cast<std::uint32_t>(layer)));
    kernels::Ops& ops = tools_.ops;
    const kernels::Floats inputs = w.expert_rows;  // no expert uses these rows now
    const kernels::Floats row = ops.on_host() ? kernels::floats_at(residual.data()) : w.row;
    ops.run(kernels::op::CopyRows{
        .from = w.normed, .rows = tokens, .columns = d, .from_stride = d, .to = inputs, .to_stride = d});
    ops.send(residual, row, device::Traffic::kDemand);
    ops.run(kernels::op::AddToRows{.x = row, .rows = tokens, .columns = d, .to = inputs});
    return tools_.scores.score(next_sparse(tools_.config, layer), inputs, step, w);
  }
  kernels::Floats inputs(const Workspace& w) const override { return w.expert_rows; }

 private:
  const PredictorTools tools_;
};

}  // namespace

std::unique_ptr<Predictor> make_residual_predictor(const PredictorTools& tools) {
  return std::make_unique<ResidualPredictor>(tools);
}

}  // namespace sluice::engine
