// Fetches the experts that most tokens are predicted to choose. What `stream`, `raw` and `dali-residual` have
// in common: they differ in the predictor alone. SPEC §3.4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/workload_forecast.h"

namespace sluice::experts {

// Asks nothing but the predicted scores and the residency. Keeps (T, N) doubles twice, and allocates nothing
// once it has seen the largest step. Thread-compatible.
class ForecastPrefetch final : public Prefetch {
 public:
  ForecastPrefetch(PredictorKind predictor, std::string name)
      : predictor_(predictor), name_(std::move(name)) {}

  // A token chooses the top-k of the predicted logits, or of the scores where there are no logits.
  void propose(const LayerState& state, std::vector<PartRequest>& out) override;
  PredictorKind predictor() const override { return predictor_; }
  WorkloadForecast* forecast() override { return &forecast_; }
  std::string name() const override { return name_; }

 private:
  const PredictorKind predictor_;
  const std::string name_;
  WorkloadForecast forecast_;
  std::vector<double> logits_, scores_;  // (T, N)
  std::vector<std::uint8_t> resident_;   // (N)
};

}  // namespace sluice::experts
