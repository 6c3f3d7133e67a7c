#include "experts/prefetch/forecast_prefetch.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::experts {

void ForecastPrefetch::propose(const LayerState& state, std::vector<PartRequest>& out) {
  if (state.next == nullptr) return;
  const ScoresView& next = *state.next;
  const std::span<const float> logits = next.logits.empty() ? next.scores : next.logits;
  logits_.assign(logits.begin(), logits.end());
  scores_.assign(next.scores.begin(), next.scores.end());
  forecast_.predict({.tokens = next.tokens,
                     .experts = next.experts,
                     .top_k = std::min(state.top_k, next.experts),
                     .logits = logits_,
                     .scores = scores_});
  const auto id_of = [&](std::uint32_t e) {
    return ExpertId{static_cast<std::uint16_t>(next.layer), static_cast<std::uint16_t>(e)};
  };
  resident_.resize(next.experts);
  for (std::uint32_t e = 0; e < next.experts; ++e)
    resident_[e] = is_computable(state.residency->parts(id_of(e))) ? 1 : 0;
  for (const std::uint32_t e : forecast_.order(resident_, state.most))
    out.push_back({id_of(e), state.certain, state.tier});
}

std::string_view predictor_name(PredictorKind kind) {
  switch (kind) {
    case PredictorKind::kStream:
      return "stream";
    case PredictorKind::kGateInput:
      return "raw";
    case PredictorKind::kResidual:
      return "residual";
    case PredictorKind::kPartial:
      return "partial";
    case PredictorKind::kNone:
      break;
  }
  SLUICE_CHECK(false, "no predictor has no name");
}

}  // namespace sluice::experts
