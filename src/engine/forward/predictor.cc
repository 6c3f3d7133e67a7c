#include "engine/forward/predictor.h"

#include "base/error.h"

namespace sluice::engine {

std::unique_ptr<Predictor> make_predictor(experts::PredictorKind kind, const PredictorTools& tools) {
  switch (kind) {
    case experts::PredictorKind::kNone:
      break;
    case experts::PredictorKind::kStream:
      return make_stream_predictor(tools);
    case experts::PredictorKind::kGateInput:
      return make_gate_input_predictor(tools);
    case experts::PredictorKind::kResidual:
      SLUICE_CHECK(false, "experts/combination.h refuses a prefetch whose residual nobody has measured");
  }
  return nullptr;
}

std::size_t next_sparse(const model::ModelConfig& config, std::size_t layer) {
  do ++layer;
  while (!config.sparse[layer]);
  return layer;
}

}  // namespace sluice::engine
