#include "reproduce/zipmoe/hot_overlap.h"

#include <algorithm>
#include <numeric>

namespace sluice::reproduce {
namespace {

using Counts = std::vector<std::vector<double>>;  // by layer and expert

Counts no_counts(const lab::RoutedSteps& steps) {
  return Counts(steps.layers, std::vector<double>(steps.experts));
}

void add(const lab::RoutedStep& step, Counts& counts) {
  for (std::size_t layer = 0; layer < step.layers.size(); ++layer)
    for (const experts::Choice& choice : step.layers[layer].choices) counts[layer][choice.expert] += 1;
}

// Share of `requests` that go to the `count` experts with the most `heat`.
double covered(const std::vector<double>& heat, const std::vector<double>& requests, std::uint32_t count) {
  const double all = std::accumulate(requests.begin(), requests.end(), 0.0);
  if (all == 0) return 0;
  std::vector<std::size_t> order(heat.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t e) { return heat[e]; });
  double sum = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, order.size()); ++i) sum += requests[order[i]];
  return sum / all;
}

}  // namespace

std::vector<std::uint32_t> hot_counts(std::uint32_t experts) {
  std::vector<std::uint32_t> counts = {std::max(1u, experts / 16)};
  while (2 * counts.back() < experts) counts.push_back(2 * counts.back());
  return counts;
}

std::vector<HotOverlap> hot_overlap(const lab::RoutedSteps& steps, const std::vector<std::uint32_t>& hottest,
                                    std::size_t early) {
  std::vector<HotOverlap> overlaps;
  for (const std::uint32_t count : hottest)
    overlaps.push_back({.hottest = count,
                        .chance = std::min(1.0, static_cast<double>(count) / std::max(1u, steps.experts))});
  Counts prompt = no_counts(steps), decode = no_counts(steps);
  double generations = 0;
  std::size_t decoded = 0;
  const auto end_generation = [&] {
    if (decoded > 0) {
      generations += 1;
      for (HotOverlap& one : overlaps)
        for (std::uint32_t layer = 0; layer < steps.layers; ++layer) {
          one.prompt += covered(prompt[layer], decode[layer], one.hottest);
          one.best += covered(decode[layer], decode[layer], one.hottest);
        }
    }
    prompt = no_counts(steps);
    decode = no_counts(steps);
    decoded = 0;
  };
  bool in_prompt = false;
  for (const lab::RoutedStep& step : steps.steps) {
    if (step.prompt && !in_prompt) end_generation();
    in_prompt = step.prompt;
    if (step.prompt)
      add(step, prompt);
    else if (decoded++ < early)
      add(step, decode);
  }
  end_generation();
  for (HotOverlap& one : overlaps) {
    if (generations == 0) continue;
    one.prompt /= generations * steps.layers;
    one.best /= generations * steps.layers;
  }
  return overlaps;
}

}  // namespace sluice::reproduce
