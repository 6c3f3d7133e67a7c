#include "reproduce/smoe/rank_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "base/error.h"

namespace sluice::reproduce {
namespace {

struct Ranked {
  std::vector<std::uint32_t> order;  // (N) by score descending, then id
  std::vector<double> scores;        // (N) softmax, in that order
};

void rank(std::span<const float> logits, Ranked& out) {
  out.order.resize(logits.size());
  std::iota(out.order.begin(), out.order.end(), 0u);
  std::ranges::stable_sort(out.order,
                           [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  out.scores.clear();
  double sum = 0;
  for (const std::uint32_t e : out.order) {
    out.scores.push_back(std::exp(double{logits[e]} - logits[out.order.front()]));
    sum += out.scores.back();
  }
  for (double& score : out.scores) score /= sum;
}

}  // namespace

RankFigures rank_figures(const lab::RoutedSteps& steps) {
  SLUICE_CHECK(steps.logits);
  RankFigures found{std::vector<double>(steps.experts), std::vector<double>(steps.experts)};
  double tokens = 0, pairs = 0;
  const lab::RoutedStep* before = nullptr;
  Ranked here, last;
  for (const lab::RoutedStep& step : steps.steps) {
    SLUICE_CHECK(step.sequences.size() == 1);
    if (!step.prompt)
      for (std::size_t l = 0; l < step.layers.size(); ++l) {
        rank(step.layers[l].logits, here);
        tokens += 1;
        for (std::size_t r = 0; r < steps.experts; ++r) found.score[r] += here.scores[r];
        if (before == nullptr || before->prompt ||
            before->sequences[0].sequence != step.sequences[0].sequence)
          continue;
        rank(before->layers[l].logits, last);
        pairs += 1;
        const auto chosen = std::span(here.order).first(steps.top_k);
        for (std::size_t r = 0; r < steps.experts; ++r)
          found.reuse[r] += std::ranges::find(chosen, last.order[r]) != chosen.end() ? 1 : 0;
      }
    before = &step;
  }
  SLUICE_CHECK(pairs > 0);
  for (std::size_t r = 0; r < steps.experts; ++r) {
    found.score[r] /= tokens;
    found.reuse[r] /= pairs;
  }
  return found;
}

lab::RoutingFacts routing_facts(const lab::RoutedSteps& steps) {
  SLUICE_CHECK(steps.logits);
  lab::RoutingCounter counter(steps.layers, steps.experts, steps.top_k);
  std::optional<experts::SequenceId> sequence;
  Ranked ranked;
  std::vector<std::uint16_t> chosen;
  for (const lab::RoutedStep& step : steps.steps) {
    SLUICE_CHECK(step.sequences.size() == 1);
    if (step.prompt) continue;
    if (sequence != step.sequences[0].sequence) counter.begin_sequence();
    sequence = step.sequences[0].sequence;
    for (std::uint32_t l = 0; l < steps.layers; ++l) {
      rank(step.layers[l].logits, ranked);
      chosen.assign(ranked.order.begin(), ranked.order.begin() + steps.top_k);
      counter.add(l, chosen,
                  std::accumulate(ranked.scores.begin(), ranked.scores.begin() + steps.top_k, 0.0));
    }
  }
  return counter.facts();
}

}  // namespace sluice::reproduce
