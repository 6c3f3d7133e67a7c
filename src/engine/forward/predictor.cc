#include "engine/forward/predictor.h"

namespace sluice::engine {

std::unique_ptr<Predictor> make_predictor(experts::PredictorKind kind, const PredictorTools& tools) {
  switch (kind) {
    case experts::PredictorKind::kNone:
      break;
    case experts::PredictorKind::kStream:
      return make_stream_predictor(tools);
  }
  return nullptr;
}

}  // namespace sluice::engine
