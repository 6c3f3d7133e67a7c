#include "flags/slice_effects.h"

#include <fmt/format.h>

#include "base/error.h"
#include "experts/registry.h"
#include "experts/routing/slice_names.h"

namespace sluice::app {

bool keeps_limit(experts::ConstraintMode mode) {
  return mode == experts::ConstraintMode::kHard || mode == experts::ConstraintMode::kAdaptive;
}

ChosenPolicies chosen_policies(const engine::EngineOptions& options) {
  using experts::PrecisionMode;
  const std::string preset = options.preset.empty() ? "auto" : options.preset;
  const bool sliced = options.precision != PrecisionMode::kFull ||
                      experts::find_preset(preset).precision != PrecisionMode::kFull;
  const engine::EngineOptions all = engine::with_preset(options, false, sliced);
  return {all.precision, *all.constraint, all.router, all.cache};
}

void check_effects(const SliceFlags& flags, const engine::EngineOptions& options,
                   const ChosenPolicies& chosen) {
  using experts::ConstraintMode;
  using experts::CriticalRule;
  using experts::InitialSlices;
  const bool dbsc = chosen.precision == experts::PrecisionMode::kDbsc;
  const bool low = chosen.precision == experts::PrecisionMode::kLow;
  const bool counted = options.critical.kind == CriticalRule::Kind::kFixedTopC;
  const bool by_slices = experts::find_cache(chosen.cache).sliced;
  const bool adaptive = chosen.constraint == ConstraintMode::kAdaptive;
  const InitialSlices initial = options.slices.initial;
  const struct {
    const char* flag;
    bool given, acts;
    const char* needs;
  } all[] = {
      {"--critical", !flags.critical.empty(), dbsc, "--precision dbsc"},
      {"--theta", !flags.theta.empty(), dbsc && !counted,
       "--precision dbsc, and critical experts by single-head or rel_top1"},
      {"--critical-count", flags.critical_count.has_value(), dbsc && counted,
       "--precision dbsc and --critical fixed_top_c"},
      {"--low-view", !flags.low_view.empty(), dbsc || low, "--precision dbsc or low"},
      {"--lsb-miss", !flags.lsb_miss.empty(), dbsc, "--precision dbsc"},
      {"--lsb-reserve", !flags.lsb_reserve.empty(), by_slices && !low,
       "the cache slice-lru, and --precision dbsc or high"},
      {"--warmup", !flags.warmup.empty(), by_slices, "the cache slice-lru"},
      {"--kappa", !flags.kappa.empty(), by_slices && !low && initial == InitialSlices::kWarmup,
       "the cache slice-lru with --warmup pcw, and --precision dbsc or high"},
      {"--rho", !flags.rho.empty(),
       by_slices && (initial == InitialSlices::kWarmup || initial == InitialSlices::kRandom),
       "the cache slice-lru with --warmup pcw or random"},
      {"--miss-rate", !flags.miss_rate.empty(), keeps_limit(chosen.constraint),
       flags.constraint.empty() ? "--preset slicemoe, or --constraint hard or adaptive"
                                : "--constraint hard or adaptive"},
      {"--lambda", !flags.lambda.empty(), chosen.router == "cache-prior", "the router cache-prior"},
      {"--eta", !flags.eta.empty(), adaptive, "--constraint adaptive"},
      {"--cumsum-p", !flags.p.empty(), chosen.router == "cumsum", "--router cumsum"},
      {"--top-j", flags.top_j.has_value(), experts::find_router(chosen.router).lossy,
       "the router cache-prior or cumsum"},
  };
  for (const auto& [flag, given, acts, needs] : all) {
    if (!given || acts) continue;
    // Without slices the cache is not shown: it also depends on how the experts are stored.
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(flag)
        .expected(needs)
        .found(
            fmt::format("precision {}, constraint {}, router {}{}", experts::precision_name(chosen.precision),
                        experts::constraint_name(chosen.constraint), chosen.router,
                        chosen.precision == experts::PrecisionMode::kFull ? "" : ", cache " + chosen.cache))
        .fix(fmt::format("give what the flag needs, or leave {} out", flag));
  }
}

}  // namespace sluice::app
