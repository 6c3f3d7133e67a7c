// STREAM: the experts that the next layer's router would choose for the current state. The residual stream
// changes slowly from layer to layer, so most of them will be chosen. Ours; SPEC §2.3, without running the
// next layer's attention; §3.4's variant `raw`, but with the next layer's own norm.
#include "experts/prefetch/forecast_prefetch.h"

namespace sluice::experts {

std::unique_ptr<Prefetch> make_stream_prefetch(const PrefetchConfig&) {
  return std::make_unique<ForecastPrefetch>(PredictorKind::kStream, "stream");
}

}  // namespace sluice::experts
