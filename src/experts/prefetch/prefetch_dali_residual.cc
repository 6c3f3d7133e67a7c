// DALI-RESIDUAL: the experts that the next layer's router would choose for what this layer's router saw, plus
// how much the two inputs differ on the average of a calibration text. DALI (eq. 10, 11); SPEC §3.4.
#include "experts/prefetch/forecast_prefetch.h"

namespace sluice::experts {

std::unique_ptr<Prefetch> make_dali_residual_prefetch(const PrefetchConfig&) {
  return std::make_unique<ForecastPrefetch>(PredictorKind::kResidual, "dali-residual");
}

}  // namespace sluice::experts
