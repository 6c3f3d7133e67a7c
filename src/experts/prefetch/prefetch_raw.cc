// RAW: the experts that the next layer's router would choose for what this layer's router saw. HybriMoE's
// prediction as DALI compares with it; SPEC §3.4.
#include "experts/prefetch/forecast_prefetch.h"

namespace sluice::experts {

std::unique_ptr<Prefetch> make_raw_prefetch(const PrefetchConfig&) {
  return std::make_unique<ForecastPrefetch>(PredictorKind::kGateInput, "raw");
}

}  // namespace sluice::experts
