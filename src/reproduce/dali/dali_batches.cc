#include "reproduce/dali/dali_batches.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/stop_request.h"

namespace sluice::reproduce {
namespace {

std::vector<std::uint32_t> workload(const lab::RoutedLayer& layer, std::uint32_t experts) {
  std::vector<std::uint32_t> tokens(experts);
  for (const experts::Choice& choice : layer.choices) ++tokens[choice.expert];
  return tokens;
}

std::vector<std::uint32_t> busiest(const std::vector<std::uint32_t>& tokens, std::size_t top) {
  std::vector<std::uint32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return tokens[a] > tokens[b]; });
  order.resize(std::min(top, order.size()));
  std::erase_if(order, [&](std::uint32_t e) { return tokens[e] == 0; });
  return order;
}

}  // namespace

void WeightedTokens::add_token(std::span<const experts::Choice> choices) {
  SLUICE_CHECK(choices.size() == std::size_t{layers_} * top_k_);
  choices_.insert(choices_.end(), choices.begin(), choices.end());
}

WeightedTokens WeightedTokens::part(std::size_t first, std::size_t last) const {
  SLUICE_CHECK(first <= last && last <= tokens());
  WeightedTokens some(layers_, experts_, top_k_);
  const auto at = [&](std::size_t token) {
    return choices_.begin() + static_cast<std::ptrdiff_t>(token * layers_ * top_k_);
  };
  some.choices_.assign(at(first), at(last));
  return some;
}

experts::ExpertTransitions WeightedTokens::transitions() const {
  experts::ExpertTransitions transitions(layers_, experts_);
  std::vector<std::uint16_t> here, next;
  const auto ids = [&](std::size_t token, std::uint32_t layer, std::vector<std::uint16_t>& out) {
    out.clear();
    for (const experts::Choice& choice : chosen(token, layer)) out.push_back(choice.expert);
  };
  for (std::size_t t = 0; t < tokens(); ++t)
    for (std::uint32_t l = 0; l + 1 < layers_; ++l) {
      ids(t, l, here);
      ids(t, l + 1, next);
      transitions.add(l, here, next);
    }
  return transitions;
}

std::vector<std::vector<double>> WeightedTokens::popularity() const {
  std::vector<std::vector<double>> counts(layers_, std::vector<double>(experts_));
  for (std::size_t t = 0; t < tokens(); ++t)
    for (std::uint32_t l = 0; l < layers_; ++l)
      for (const experts::Choice& choice : chosen(t, l)) counts[l][choice.expert] += 1;
  return counts;
}

WeightedTokens read_weighted_tokens(trace::RoutingTrace& trace, const std::function<bool()>& stop) {
  const trace::TraceHeader& header = trace.header();
  WeightedTokens tokens(header.layers, header.experts, header.top_k);
  std::vector<std::vector<experts::Choice>> step;  // each token's: (L, k)
  trace::TraceEvent event;
  const auto lacks = [&] {
    return Error(ErrorKind::kInvalid, "a token of the trace lacks experts in a layer").in(trace.path());
  };
  for (std::size_t number = 0; trace.next(event); ++number) {
    stop_if(stop, number);
    if (event.layer == 0) step.assign(event.tokens, {});
    if (event.tokens != step.size()) throw lacks();
    for (std::uint32_t t = 0; t < event.tokens; ++t)
      step[t].insert(step[t].end(), event.choices.begin() + event.begin[t],
                     event.choices.begin() + event.begin[t + 1]);
    if (event.layer + 1 < header.layers) continue;
    for (const std::vector<experts::Choice>& choices : step) {
      if (choices.size() != std::size_t{header.layers} * header.top_k) throw lacks();
      tokens.add_token(choices);
    }
  }
  return tokens;
}

WeightedTokens synthetic_weighted_tokens(const lab::SyntheticRouting& settings) {
  WeightedTokens tokens(settings.layers, settings.experts, settings.top_k);
  lab::SyntheticTokens source(settings);
  std::vector<experts::Choice> choices;
  while (source.next()) {
    choices.clear();
    for (std::uint32_t layer = 0; layer < settings.layers; ++layer)
      for (const std::uint16_t expert : source.chosen(layer))
        choices.push_back({.expert = expert, .weight = static_cast<float>(source.score(layer, expert))});
    tokens.add_token(choices);
  }
  return tokens;
}

lab::RoutedSteps batch_of(const WeightedTokens& tokens, const BatchShape& shape) {
  SLUICE_CHECK(shape.sequences > 0 && tokens.tokens() > 0);
  lab::RoutedSteps steps{
      .layers = tokens.layers(), .experts = tokens.experts(), .top_k = tokens.top_k(), .steps = {}};
  const auto add = [&](std::uint32_t first, std::uint32_t count, bool prompt) {
    lab::RoutedStep& step = steps.steps.emplace_back();
    step.prompt = prompt;
    step.layers.resize(tokens.layers());
    for (lab::RoutedLayer& layer : step.layers) layer.begin = {0};
    for (std::uint32_t b = 0; b < shape.sequences; ++b) {
      step.sequences.push_back({count, first, b});
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::size_t token = (b * tokens.tokens() / shape.sequences + first + i) % tokens.tokens();
        for (std::uint32_t l = 0; l < tokens.layers(); ++l) {
          lab::RoutedLayer& layer = step.layers[l];
          const auto chosen = tokens.chosen(token, l);
          layer.choices.insert(layer.choices.end(), chosen.begin(), chosen.end());
          layer.begin.push_back(static_cast<std::uint32_t>(layer.choices.size()));
        }
      }
    }
    (prompt ? steps.prompt_tokens : steps.decode_tokens) += step.tokens();
  };
  if (shape.prompt > 0) add(0, shape.prompt, true);
  steps.prompts = shape.prompt > 0 ? shape.sequences : 0;
  for (std::uint32_t i = 0; i < shape.output; ++i) add(shape.prompt + i, 1, false);
  return steps;
}

double workload_overlap(const lab::RoutedSteps& steps, std::size_t top,
                        const std::vector<std::uint32_t>& layers) {
  double kept = 0, all = 0;
  for (std::uint32_t l = 0; l < steps.layers; ++l) {
    if (!layers.empty() && std::ranges::count(layers, l) == 0) continue;
    std::vector<std::uint32_t> before;
    for (const lab::RoutedStep& step : steps.steps) {
      if (step.prompt) continue;
      std::vector<std::uint32_t> now = busiest(workload(step.layers[l], steps.experts), top);
      for (const std::uint32_t e : now) {
        if (before.empty()) break;
        kept += static_cast<double>(std::ranges::count(before, e));
        all += 1;
      }
      before = std::move(now);
    }
  }
  return all == 0 ? 0 : kept / all;
}

double active_experts(const lab::RoutedSteps& steps) {
  double active = 0, events = 0;
  for (const lab::RoutedStep& step : steps.steps) {
    if (step.prompt) continue;
    for (const lab::RoutedLayer& layer : step.layers) {
      const std::vector<std::uint32_t> tokens = workload(layer, steps.experts);
      active += static_cast<double>(tokens.size()) - static_cast<double>(std::ranges::count(tokens, 0u));
      events += 1;
    }
  }
  return events == 0 ? 0 : active / events;
}

}  // namespace sluice::reproduce
