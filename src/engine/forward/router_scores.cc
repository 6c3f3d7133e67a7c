#include "engine/forward/router_scores.h"

#include <algorithm>

#include "kernels/elementwise/elementwise.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::engine {

using model::Role;

experts::ScoresView RouterScores::of_layer(std::size_t layer, const Step& step, const Workspace& w) {
  experts::ScoresView view = score(layer, w.normed, step, w);
  describe_spans(step, spans_);
  view.spans = spans_;
  return view;
}

experts::ScoresView RouterScores::score(std::size_t layer, const float* normed, const Step& step,
                                        const Workspace& w) {
  const std::size_t tokens = step.tokens.size(), experts = config_.moe.experts;
  kernels::Context exact = kernels_;  // routers are not rounded
  exact.products = kernels::Products::kExact;
  const float* arranged = w.arranged[static_cast<std::size_t>(codec::InputForm::kWords)];
  if (normed != w.normed || kernels_.rounds()) {
    kernels::arrange_activations(exact, normed, tokens, config_.hidden, config_.hidden, w.gathered);
    arranged = w.gathered;
  }
  kernels::matmul(exact, arranged, tokens, weights_.matrix(Role::kRouter, static_cast<std::int32_t>(layer)),
                  {}, w.router_logits, experts);
  std::copy_n(w.router_logits, tokens * experts, w.scores);
  kernels::softmax_rows(kernels_, w.scores, tokens, experts);
  return {.layer = config_.sparse_index(static_cast<std::uint32_t>(layer)),
          .experts = static_cast<std::uint32_t>(experts),
          .tokens = static_cast<std::uint32_t>(tokens),
          .logits = {w.router_logits, tokens * experts},
          .scores = {w.scores, tokens * experts}};
}

}  // namespace sluice::engine
