// The next layers are computed ahead, up to the router of the next sparse one: on the residual stream with
// what is known of this layer, the experts that are still missing left out and nothing weighted anew. SMoE
// (arXiv 2508.18983 §5.2); SPEC §2.3.
//
// Keys and values of the step's tokens go to their rows of the cache. Those rows are nobody's until the step
// has ended: the next layer writes them again before it reads them, and a step that fails leaves them behind
// the sequence's end.
#include "base/error.h"
#include "engine/forward/layer_run.h"
#include "engine/forward/predictor.h"
#include "engine/forward/sparse_block.h"

namespace sluice::engine {
namespace {

namespace op = kernels::op;

// Goes as far as the scores of the experts.
class ScoresAlone final : public SparseBlock {
 public:
  explicit ScoresAlone(RouterScores& scores) : scores_(scores) {}
  void run(std::size_t layer, model::Role, const Step& step, const Workspace& w) override {
    result = scores_.score(layer, w.normed, step, w);
  }
  experts::ScoresView result;

 private:
  RouterScores& scores_;
};

class PartialStatePredictor final : public PartialPredictor {
 public:
  explicit PartialStatePredictor(const PredictorTools& tools) : tools_(tools) {
    SLUICE_CHECK(tools.ahead && tools.ahead->workspace.shape().ahead_tokens != 0);
  }

  void know(std::span<const op::WeightedRow> rows, std::size_t row_count) override {
    rows_ = rows;
    row_count_ = row_count;
  }

  experts::ScoresView predict(std::size_t layer, model::Role, const Step& step, const Workspace& w,
                              bool) override {
    SLUICE_CHECK(step.tokens.size() <= tools_.ahead->workspace.shape().ahead_tokens);
    begin_stream(step.tokens.size(), w);
    ScoresAlone scores(tools_.scores);
    LayerRun run(tools_.ops, tools_.config, tools_.weights, scores, tools_.ahead->workspace, step,
                 tools_.ahead->workspace.ahead());
    const std::size_t last = next_sparse(tools_.config, layer);
    while (++layer <= last) {
      run.begin_layer(layer);
      tools_.ahead->forward.attention(run);
      tools_.ahead->forward.feed_forward(run);
    }
    return scores.result;
  }
  kernels::Floats inputs(const Workspace&) const override { return ahead().normed; }

 private:
  const Workspace& ahead() const { return tools_.ahead->workspace.get(tools_.ahead->workspace.ahead()); }

  // The residual stream behind the running layer, as far as it is known.
  void begin_stream(std::size_t tokens, const Workspace& w) {
    const std::size_t d = tools_.config.hidden;
    const auto copy = [&](kernels::Floats from, kernels::Floats to) {
      tools_.ops.run(op::CopyRows{
          .from = from, .rows = tokens, .columns = d, .from_stride = d, .to = to, .to_stride = d});
    };
    copy(w.hidden, ahead().hidden);
    copy(w.branch, ahead().branch);
    tools_.ops.run(op::CombineRows{.rows = w.expert_rows,
                                   .row_count = row_count_,
                                   .columns = d,
                                   .sums = rows_,
                                   .to = ahead().branch,
                                   .tokens = tokens});
    tools_.ops.run(op::Add{ahead().branch, tokens * d, ahead().hidden});
  }

  const PredictorTools tools_;
  std::span<const op::WeightedRow> rows_;
  std::size_t row_count_ = 0;
};

}  // namespace

std::unique_ptr<PartialPredictor> make_partial_predictor(const PredictorTools& tools) {
  return std::make_unique<PartialStatePredictor>(tools);
}

}  // namespace sluice::engine
