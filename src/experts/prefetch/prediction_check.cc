#include "experts/prefetch/prediction_check.h"

#include <algorithm>

#include "base/error.h"
#include "experts/prefetch/workload_forecast.h"

namespace sluice::experts {

PredictionCounts& PredictionCounts::operator+=(const PredictionCounts& other) {
  predicted += other.predicted;
  active += other.active;
  top += other.top;
  wanted += other.wanted;
  return *this;
}

void TopPrediction::expect(std::uint32_t layer, std::uint32_t x, std::span<const std::uint32_t> named) {
  SLUICE_CHECK(named.size() <= x);
  expects_ = true;
  layer_ = layer;
  x_ = x;
  named_.assign(named.begin(), named.end());
}

PredictionCounts TopPrediction::observe(std::uint32_t layer, std::span<const std::uint32_t> tokens,
                                        std::span<const double> scores) {
  if (!expects_ || layer != layer_) return {};
  expects_ = false;
  top_.clear();
  for (std::uint32_t e = 0; e < tokens.size(); ++e)
    if (tokens[e] > 0) top_.push_back(e);
  top_by_workload(tokens, scores, x_, top_);
  PredictionCounts counts{.predicted = named_.size(), .wanted = top_.size()};
  for (const std::uint32_t e : named_) {
    counts.active += tokens[e] > 0 ? 1 : 0;
    counts.top += std::ranges::find(top_, e) != top_.end() ? 1 : 0;
  }
  return counts;
}

InputPrediction::InputPrediction(std::size_t layers, std::size_t width)
    : width_(width), inputs_(layers > 1 ? kTokens * width : 0), means_(layers) {}

void InputPrediction::expect(std::size_t layer, std::span<const float> inputs) {
  SLUICE_CHECK(layer > 0 && layer < means_.size() && inputs.size() % width_ == 0);
  layer_ = layer;
  tokens_ = std::min(inputs.size() / width_, kTokens);
  std::copy_n(inputs.begin(), tokens_ * width_, inputs_.begin());
}

void InputPrediction::observe(std::size_t layer, std::span<const float> inputs) {
  if (tokens_ == 0 || layer != layer_) return;
  const std::size_t tokens = std::min(tokens_, inputs.size() / width_);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::span<const float> expected(&inputs_[t * width_], width_);
    means_[layer].sum += cosine(expected, inputs.subspan(t * width_, width_));
    means_[layer].tokens += 1;
  }
  tokens_ = 0;
}

}  // namespace sluice::experts
