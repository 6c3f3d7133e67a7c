#include "lab/replay/assumed_prediction.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/splitmix64.h"
#include "lab/replay/synthetic_routing.h"

namespace sluice::lab {
namespace {

constexpr float kNotPredicted = -64;  // a score that is nothing beside any other

// In [0, 1).
double uniform(SplitMix64& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

class Guesser {
 public:
  Guesser(double right, std::uint64_t seed, std::uint32_t experts)
      : right_(right), random_(seed), taken_(experts) {}

  void guess(RoutedLayer& layer) {
    const std::size_t n = taken_.size();
    layer.predicted.assign(std::size_t{layer.tokens()} * n, kNotPredicted);
    for (std::uint32_t t = 0; t < layer.tokens(); ++t) {
      const auto choices =
          std::span(layer.choices).subspan(layer.begin[t], layer.begin[t + 1] - layer.begin[t]);
      std::ranges::fill(taken_, std::uint8_t{0});
      for (const experts::Choice& choice : choices) taken_[choice.expert] = 1;
      std::size_t free = n - choices.size();
      for (const experts::Choice& choice : choices) {
        std::size_t expert = choice.expert;
        if (uniform(random_) >= right_ && free > 0) {
          expert = nth_free(random_.next() % free--);
          taken_[expert] = 1;
        }
        layer.predicted[t * n + expert] = std::log(std::max(choice.weight, 1e-6f));
      }
    }
  }

 private:
  std::size_t nth_free(std::uint64_t nth) const {
    std::size_t e = 0;
    for (; taken_[e] != 0 || nth > 0; ++e) nth -= taken_[e] == 0 ? 1 : 0;
    return e;
  }

  const double right_;
  SplitMix64 random_;
  std::vector<std::uint8_t> taken_;  // (N): the token's, or guessed for it
};

}  // namespace

void assume_predictions(double right, std::uint64_t seed, RoutedSteps& steps) {
  SLUICE_CHECK(right >= 0 && right <= 1);
  Guesser guesser(right, seed, steps.experts);
  for (RoutedStep& step : steps.steps)
    for (std::size_t l = 1; l < step.layers.size(); ++l)
      if (step.layers[l].begin.size() > 1) guesser.guess(step.layers[l]);
  steps.predicted = true;
}

void assume_errors(double deviation, std::uint64_t seed, RoutedSteps& steps) {
  SLUICE_CHECK(deviation >= 0 && steps.logits);
  Normal normal(SplitMix64(seed).next());  // not the numbers that synthetic routing of this seed is made of
  for (RoutedStep& step : steps.steps)
    for (std::size_t l = 1; l < step.layers.size(); ++l) {
      RoutedLayer& layer = step.layers[l];
      layer.predicted.clear();
      for (const float z : layer.logits)
        layer.predicted.push_back(static_cast<float>(z + deviation * normal()));
    }
  steps.predicted = true;
}

}  // namespace sluice::lab
