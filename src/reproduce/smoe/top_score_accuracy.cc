#include "reproduce/smoe/top_score_accuracy.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "experts/routing/score_classes.h"

namespace sluice::reproduce {
namespace {

// Marks the experts that are top-score for some token of the logits (T, N), and those that some token
// chooses.
struct Marks {
  Marks(std::uint32_t experts, std::uint32_t top_k, double alpha)
      : top_k(top_k), alpha(alpha), top(experts), chosen(experts), scores(experts) {}

  void mark(std::span<const float> logits) {
    std::ranges::fill(top, std::uint8_t{0});
    std::ranges::fill(chosen, std::uint8_t{0});
    for (std::size_t at = 0; at < logits.size(); at += scores.size()) {
      const auto row = logits.subspan(at, scores.size());
      const double most = *std::ranges::max_element(row);
      std::ranges::transform(row, scores.begin(), [&](float z) { return std::exp(z - most); });
      classes.classify(scores, {}, top_k, alpha);
      for (const std::uint32_t e : classes.chosen()) chosen[e] = 1;
      for (const std::uint32_t e : classes.top()) top[e] = 1;
    }
  }

  const std::uint32_t top_k;
  const double alpha;
  std::vector<std::uint8_t> top, chosen;  // (N)
  std::vector<double> scores;             // (N) of a token, times some positive number
  experts::ScoreClasses classes;
};

}  // namespace

TopScoreAccuracy top_score_accuracy(const lab::RoutedSteps& steps, double alpha) {
  SLUICE_CHECK(steps.logits && steps.predicted);
  TopScoreAccuracy found;
  Marks predicted(steps.experts, steps.top_k, alpha), real(steps.experts, steps.top_k, alpha);
  for (const lab::RoutedStep& step : steps.steps) {
    if (step.prompt) continue;
    for (std::size_t l = 1; l < step.layers.size(); ++l) {
      predicted.mark(step.layers[l].predicted);
      real.mark(step.layers[l].logits);
      for (std::uint32_t e = 0; e < steps.experts; ++e) {
        if (predicted.top[e] == 0) continue;
        found.predicted += 1;
        found.top += real.top[e];
        found.active += real.chosen[e];
      }
    }
  }
  return found;
}

}  // namespace sluice::reproduce
