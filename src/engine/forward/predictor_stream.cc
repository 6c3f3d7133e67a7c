// The next layer's own norm and router see the residual stream as it is now: before this layer's branch is
// added, or, once the layer has been computed, with it. The stream changes slowly from layer to layer. Ours;
// SPEC §2.3 without the next layer's attention.
#include "engine/forward/predictor.h"

namespace sluice::engine {
namespace {

class StreamPredictor final : public Predictor {
 public:
  explicit StreamPredictor(const PredictorTools& tools) : tools_(tools) {}

  experts::ScoresView predict(std::size_t layer, model::Role norm, const Step& step, const Workspace& w,
                              bool computed) override {
    const std::size_t d = tools_.config.hidden, tokens = step.tokens.size();
    const std::size_t next = next_sparse(tools_.config, layer);
    kernels::Ops& ops = tools_.ops;
    const kernels::Floats stream = w.expert_rows;  // no expert uses these rows now
    ops.run(kernels::op::CopyRows{
        .from = w.hidden, .rows = tokens, .columns = d, .from_stride = d, .to = stream, .to_stride = d});
    if (computed) ops.run(kernels::op::Add{w.branch, tokens * d, stream});
    ops.run(kernels::op::RmsNorm{.x = stream,
                                 .rows = tokens,
                                 .columns = d,
                                 .x_stride = d,
                                 .weight = tools_.weights.vector(norm, static_cast<std::int32_t>(next)),
                                 .eps = tools_.config.rms_eps,
                                 .y = stream,
                                 .y_stride = d});
    return tools_.scores.score(next, stream, step, w);
  }
  kernels::Floats inputs(const Workspace& w) const override { return w.expert_rows; }

 private:
  const PredictorTools tools_;
};

}  // namespace

std::unique_ptr<Predictor> make_stream_predictor(const PredictorTools& tools) {
  return std::make_unique<StreamPredictor>(tools);
}

}  // namespace sluice::engine
