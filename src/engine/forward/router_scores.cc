#include "engine/forward/router_scores.h"

#include <algorithm>

#include "kernels/elementwise/elementwise.h"

namespace sluice::engine {

using model::Role;

experts::ScoresView RouterScores::of_layer(std::size_t layer, const Step& step, const Workspace& w) {
  experts::ScoresView view = score(layer, w.normed, step, w);
  describe_spans(step, spans_);
  view.spans = spans_;
  return view;
}

experts::ScoresView RouterScores::score(std::size_t layer, kernels::Floats normed, const Step& step,
                                        const Workspace& w) {
  const std::size_t tokens = step.tokens.size(), experts = config_.moe.experts, d = config_.hidden;
  kernels::Floats arranged = w.arranged[static_cast<std::size_t>(codec::InputForm::kWords)];
  if (normed != w.normed || host_.rounds()) {  // routers are not rounded
    arranged = w.gathered;
    ops_.run(kernels::op::Arrange{.form = codec::InputForm::kWords,
                                  .x = normed,
                                  .tokens = tokens,
                                  .columns = d,
                                  .x_stride = d,
                                  .arranged = arranged,
                                  .exact = true});
  }
  const auto at = static_cast<std::int32_t>(layer);
  ops_.run(kernels::op::Matmul{.x = arranged,
                               .tokens = tokens,
                               .weight = &weights_.matrix(Role::kRouter, at),
                               .bias = weights_.vector_or_empty(Role::kRouterBias, at),
                               .y = w.router_logits,
                               .y_stride = experts,
                               .exact = true});
  const std::span<float> logits(w.host.router_logits, tokens * experts);
  ops_.receive(w.router_logits, logits);
  std::ranges::copy(logits, w.host.scores);
  kernels::softmax_rows(host_, w.host.scores, tokens, experts);
  return {.layer = config_.sparse_index(static_cast<std::uint32_t>(layer)),
          .experts = static_cast<std::uint32_t>(experts),
          .tokens = static_cast<std::uint32_t>(tokens),
          .logits = logits,
          .scores = {w.host.scores, tokens * experts}};
}

}  // namespace sluice::engine
