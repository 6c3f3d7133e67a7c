#include "experts/cache/layer_forecasts.h"

#include <algorithm>

namespace sluice::experts {

const ReuseForecast& LayerForecasts::on_event(const StepReport& report, std::span<const ExpertId> used) {
  const std::uint16_t layer = used.front().layer;
  if (layer >= layers_.size()) layers_.resize(layer + std::size_t{1});
  indices_.clear();
  for (const ExpertId id : used) indices_.push_back(id.index);
  const bool of_place = layer == report.place.layer;
  if (of_place) layers_[layer].grow(report.place.layer_tokens.size());
  const bool prompt = of_place && report.place.step == StepKind::kPrompt && !report.tokens.empty();
  ReuseForecast::Event event{.used = indices_, .tokens = {}};
  if (prompt) {
    const auto first = static_cast<std::size_t>(used.data() - report.used.data());
    event.tokens = report.tokens.subspan(first, used.size());
    event.prompt_tokens = report.place.tokens;
  }
  layers_[layer].on_event(event);
  return layers_[layer];
}

std::span<const ExpertId> first_layer(std::span<const ExpertId> left) {
  const auto other = std::ranges::find_if(left, [&](ExpertId id) { return id.layer != left.front().layer; });
  return left.first(static_cast<std::size_t>(other - left.begin()));
}

}  // namespace sluice::experts
