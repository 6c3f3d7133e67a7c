// Batches for DALI's rows: prompts that are computed together, then decode steps, cut out of one long row of
// recorded or synthetic tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "experts/prefetch/expert_transitions.h"
#include "lab/replay/routed_steps.h"
#include "lab/replay/synthetic_routing.h"
#include "trace/routing_trace.h"

namespace sluice::reproduce {

// Routing token by token, with weights. Thread-compatible.
class WeightedTokens {
 public:
  WeightedTokens(std::uint32_t layers, std::uint32_t experts, std::uint32_t top_k)
      : layers_(layers), experts_(experts), top_k_(top_k) {}

  std::uint32_t layers() const { return layers_; }
  std::uint32_t experts() const { return experts_; }
  std::uint32_t top_k() const { return top_k_; }
  std::size_t tokens() const { return choices_.size() / layers_ / top_k_; }
  std::span<const experts::Choice> chosen(std::size_t token, std::uint32_t layer) const {
    return std::span(choices_).subspan((token * layers_ + layer) * top_k_, top_k_);
  }
  void add_token(std::span<const experts::Choice> choices);  // (L, k)
  // Tokens [first, last).
  WeightedTokens part(std::size_t first, std::size_t last) const;
  // By layer and expert: how many tokens chose it.
  std::vector<std::vector<double>> popularity() const;
  // Which experts followed which, in every token.
  experts::ExpertTransitions transitions() const;

 private:
  std::uint32_t layers_, experts_, top_k_;
  std::vector<experts::Choice> choices_;  // (T, L, k)
};

// Every token of a trace. Error(kInvalid) if a token lacks top-k experts in a layer; otherwise errors as
// RoutingTrace::next; Error(kInterrupted).
WeightedTokens read_weighted_tokens(trace::RoutingTrace& trace, const std::function<bool()>& stop = {});
WeightedTokens synthetic_weighted_tokens(const lab::SyntheticRouting& settings);

struct BatchShape {
  std::uint32_t sequences = 1, prompt = 0, output = 1;
};
// Sequence b is the tokens from b/sequences of the row on, around its end. All prompts are one step.
lab::RoutedSteps batch_of(const WeightedTokens& tokens, const BatchShape& shape);

// How alike neighbouring decode steps are: the share of the `top` experts of most tokens of a step that are
// among those of the step before; mean over the steps of these layers (all if empty).
double workload_overlap(const lab::RoutedSteps& steps, std::size_t top,
                        const std::vector<std::uint32_t>& layers = {});
// Distinct experts of a decode step and layer, mean.
double active_experts(const lab::RoutedSteps& steps);

}  // namespace sluice::reproduce
