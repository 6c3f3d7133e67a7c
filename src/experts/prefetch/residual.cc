#include "experts/prefetch/residual.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::experts {

ResidualMean::ResidualMean(std::size_t layers, std::size_t width)
    : width_(width), sums_(layers < 2 ? 0 : (layers - 1) * width), tokens_(layers < 2 ? 0 : layers - 1) {}

void ResidualMean::add(std::size_t layer, std::span<const double> here, std::span<const double> next) {
  SLUICE_CHECK(layer < tokens_.size() && here.size() == width_ && next.size() == width_);
  for (std::size_t i = 0; i < width_; ++i) sums_[layer * width_ + i] += next[i] - here[i];
  ++tokens_[layer];
}

std::vector<double> ResidualMean::mean(std::size_t layer) const {
  SLUICE_CHECK(layer < tokens_.size());
  if (tokens_[layer] == 0) return {};
  const auto begin = sums_.begin() + static_cast<std::ptrdiff_t>(layer * width_);
  std::vector<double> mean(begin, begin + static_cast<std::ptrdiff_t>(width_));
  for (double& m : mean) m /= static_cast<double>(tokens_[layer]);
  return mean;
}

void ResidualPrediction::predict(std::size_t tokens, std::size_t experts, std::span<const double> inputs,
                                 std::span<const double> residual, std::span<const double> gate) {
  const std::size_t d = residual.size();
  SLUICE_CHECK(inputs.size() == tokens * d && gate.size() == experts * d);
  logits_.clear();
  scores_.clear();
  if (experts == 0) return;
  for (std::size_t t = 0; t < tokens; ++t) {
    input_.assign(residual.begin(), residual.end());
    for (std::size_t i = 0; i < d; ++i) input_[i] += inputs[t * d + i];
    for (std::size_t e = 0; e < experts; ++e) {
      double z = 0;
      for (std::size_t i = 0; i < d; ++i) z += gate[e * d + i] * input_[i];
      logits_.push_back(z);
    }
    const std::span<const double> z = std::span(logits_).last(experts);
    const double most = *std::ranges::max_element(z);
    double sum = 0;
    for (const double one : z) {
      scores_.push_back(std::exp(one - most));
      sum += scores_.back();
    }
    for (double& s : std::span(scores_).last(experts)) s /= sum;
  }
}

}  // namespace sluice::experts
