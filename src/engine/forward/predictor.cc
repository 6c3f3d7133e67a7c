#include "engine/forward/predictor.h"

#include "base/error.h"

namespace sluice::engine {

Predictor& Predictors::operator[](experts::PredictorKind kind) {
  switch (kind) {
    case experts::PredictorKind::kStream:
      return *stream_;
    case experts::PredictorKind::kGateInput:
      return *gate_input_;
    case experts::PredictorKind::kResidual:
      if (residual_) return *residual_;
      break;
    case experts::PredictorKind::kPartial:
      if (partial_) return *partial_;
      break;
    case experts::PredictorKind::kNone:
      break;
  }
  SLUICE_CHECK(
      false,
      "experts/combination.h refuses a prefetch whose residual nobody has measured, and the plan has room "
      "for layers ahead where a prefetch computes them");
}

std::size_t next_sparse(const model::ModelConfig& config, std::size_t layer) {
  do ++layer;
  while (!config.sparse[layer]);
  return layer;
}

}  // namespace sluice::engine
