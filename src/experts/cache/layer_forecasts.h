// The forecast of each layer (workload/reuse_forecast.h), told of the events of a cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/cache/workload/reuse_forecast.h"

namespace sluice::experts {

// Layers of any number may come at any time. Thread-compatible.
class LayerForecasts {
 public:
  // Tells the layer of `used` that the event has used these of its experts, a stretch of report.used, and
  // forecasts anew. Experts that the event's place names are known from then on.
  const ReuseForecast& on_event(const StepReport& report, std::span<const ExpertId> used);

  const ReuseForecast& of(std::size_t layer) const { return layers_[layer]; }  // REQUIRES: it had an event

 private:
  std::vector<ReuseForecast> layers_;
  std::vector<std::uint16_t> indices_;  // scratch
};

// The experts of the first layer of `left`, which is ascending and not empty.
std::span<const ExpertId> first_layer(std::span<const ExpertId> left);

}  // namespace sluice::experts
