// The synthetic routing that SMoE's rows stand on, and how good predictions of it are. SMoE's own routing is
// not published, and recordings of others lack the scores of experts that were not chosen, which its router
// and its cache look at. So a generator (lab/replay/synthetic_routing.h) has been fitted to three figures of
// recorded DeepSeek-V2-Lite, once, before any row was computed; the rows chose nothing here. SPEC §10, G14
// and G18.
#pragma once

#include <cstdint>

#include "lab/replay/synthetic_routing.h"

namespace sluice::reproduce {

// DeepSeek-V2-Lite (26 sparse layers of 64 experts, top 6), thirteen summaries of 273 to 1402 tokens.
inline constexpr lab::RoutingFacts kRecordedFacts = {.f_1 = .40, .mass = .333, .overlap = .277};
// What shows how much the overlap of neighbouring tokens decides; nobody has recorded it.
inline constexpr double kSecondOverlap = .6;

enum class SmoeRoutingKind : std::uint8_t {
  kFitted,   // like kRecordedFacts
  kOverlap,  // the same, with kSecondOverlap: φ alone differs
};

// Fitted by `sluice_bench_routing`: layers, experts and top_k are DeepSeek-V2-Lite's, 8 prompts of 612
// tokens. Another model takes the same parameters, and so has figures of its own.
lab::SyntheticRouting smoe_routing(SmoeRoutingKind kind);

// The paper's prediction names experts that are top-score in 82 % of all cases, and active in 95 % (S-F18).
inline constexpr double kTopScorePrecision = .82;
// The standard deviation of the error of a predicted logit with which 82 % are top-score, for S3 (top 8, α =
// 0.25) on the fitted routing: fitted to that by the same program. The other share follows: 95.5 %.
inline constexpr double kPredictionError = .203;

}  // namespace sluice::reproduce
