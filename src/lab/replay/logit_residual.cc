#include "lab/replay/logit_residual.h"

#include <span>

#include "base/error.h"
#include "experts/prefetch/residual.h"

namespace sluice::lab {

LogitResiduals logit_residuals(const RoutedSteps& text) {
  SLUICE_CHECK(text.logits && text.predicted);
  const std::size_t n = text.experts;
  experts::ResidualMean mean(text.layers, n);
  std::vector<double> predicted(n), found(n);
  for (const RoutedStep& step : text.steps)
    for (std::size_t l = 1; l < step.layers.size(); ++l) {
      const RoutedLayer& layer = step.layers[l];
      for (std::size_t at = 0; at < layer.predicted.size(); at += n) {
        for (std::size_t e = 0; e < n; ++e) {
          predicted[e] = layer.predicted[at + e];
          found[e] = layer.logits[at + e];
        }
        mean.add(l - 1, predicted, found);
      }
    }
  LogitResiduals residuals(text.layers);
  for (std::size_t l = 1; l < text.layers; ++l) {
    residuals[l] = mean.mean(l - 1);
    residuals[l].resize(n);  // a layer without a token
  }
  return residuals;
}

void add_residuals(const LogitResiduals& residuals, RoutedSteps& steps) {
  SLUICE_CHECK(residuals.size() == steps.layers);
  for (RoutedStep& step : steps.steps)
    for (std::size_t l = 1; l < step.layers.size(); ++l) {
      std::vector<float>& predicted = step.layers[l].predicted;
      for (std::size_t i = 0; i < predicted.size(); ++i)
        predicted[i] = static_cast<float>(predicted[i] + residuals[l].at(i % steps.experts));
    }
}

}  // namespace sluice::lab
