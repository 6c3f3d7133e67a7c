#include "flags/slice_effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "experts/routing/slice_names.h"

namespace sluice::app {

bool keeps_limit(experts::ConstraintMode mode) {
  return mode == experts::ConstraintMode::kHard || mode == experts::ConstraintMode::kAdaptive;
}

namespace {

// What is chosen of the settings that `needs` names. Without slices only the user's own choice of a cache is
// known: the usual one also depends on how the experts are stored.
std::string chosen_text(const std::string& needs, const engine::EngineOptions& options,
                        const engine::PolicyPlan& chosen) {
  const experts::PrecisionMode precision = chosen.precision.mode;
  const bool slices = precision != experts::PrecisionMode::kFull;
  const bool known = !options.cache.empty() || slices;
  std::vector<std::string> texts;
  const auto named = [&needs](const std::string& word) { return needs.find(word) != std::string::npos; };
  const auto add = [&](Setting setting, std::string_view name) {  // empty: none is chosen
    if (named(mark(setting)))
      texts.push_back(name.empty() ? "no " + setting : setting + (' ' + std::string(name)));
  };
  add(Setting::kPrecision,
      slices ? experts::precision_name(precision) : "full, which is for experts that are not in slices");
  add(Setting::kConstraint, experts::constraint_name(chosen.limits.mode));
  add(Setting::kRouter, chosen.router->name);
  add(Setting::kCache, known ? chosen.cache->name : "");
  add(Setting::kWarmup, chosen.cache->sliced ? experts::initial_slices_name(options.slices.initial) : "");
  if (chosen.device_cache == nullptr) add(Setting::kDevice, "");
  if (precision == experts::PrecisionMode::kDbsc &&
      (named("critical experts") || named(mark(Setting::kCritical))))
    texts.push_back(options.critical.kind == experts::CriticalRule::Kind::kFixedTopC
                        ? "critical experts by fixed_top_c"
                        : "critical experts by another rule than fixed_top_c");
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

void check_effects(const SliceFlags& flags, const engine::EngineOptions& options,
                   const engine::PolicyPlan& chosen) {
  using experts::ConstraintMode;
  using experts::CriticalRule;
  using experts::InitialSlices;
  const experts::PrecisionMode precision = chosen.precision.mode;
  const bool dbsc = precision == experts::PrecisionMode::kDbsc;
  const bool low = precision == experts::PrecisionMode::kLow;
  const bool counted = options.critical.kind == CriticalRule::Kind::kFixedTopC;
  const bool by_slices = chosen.cache->sliced;
  using experts::RouterRules;
  const RouterRules rules = chosen.router->rules;
  const bool smoe = rules == RouterRules::kSmoe;
  const bool adaptive = chosen.limits.mode == ConstraintMode::kAdaptive;
  const InitialSlices initial = options.slices.initial;
  const std::string slice_lru = Setting::kCache + " slice-lru (or " + Setting::kPreset + " slicemoe)";
  const struct {
    Setting setting;
    bool given, acts;
    std::string needs;
  } all[] = {
      {Setting::kCritical, !flags.critical.empty(), dbsc, Setting::kPrecision + " dbsc"},
      {Setting::kTheta, !flags.theta.empty(), dbsc && !counted,
       Setting::kPrecision + " dbsc, and critical experts by single-head or rel_top1"},
      {Setting::kCriticalCount, flags.critical_count.has_value(), dbsc && counted,
       Setting::kPrecision + " dbsc and " + Setting::kCritical + " fixed_top_c"},
      {Setting::kLowView, !flags.low_view.empty(), dbsc || low, Setting::kPrecision + " dbsc or low"},
      {Setting::kLsbMiss, !flags.lsb_miss.empty(), dbsc, Setting::kPrecision + " dbsc"},
      {Setting::kLsbReserve, !flags.lsb_reserve.empty(), by_slices && !low,
       slice_lru + ", and " + Setting::kPrecision + " dbsc or high"},
      {Setting::kWarmup, !flags.warmup.empty(), by_slices, slice_lru},
      {Setting::kKappa, !flags.kappa.empty(), by_slices && !low && initial == InitialSlices::kWarmup,
       slice_lru + " with " + Setting::kWarmup + " pcw, and " + Setting::kPrecision + " dbsc or high"},
      {Setting::kRho, !flags.rho.empty(),
       by_slices && (initial == InitialSlices::kWarmup || initial == InitialSlices::kRandom),
       slice_lru + " with " + Setting::kWarmup + " pcw or random"},
      {Setting::kMissRate, !flags.miss_rate.empty(), keeps_limit(chosen.limits.mode),
       flags.constraint.empty()
           ? Setting::kPreset + " slicemoe, or " + Setting::kConstraint + " hard or adaptive"
           : Setting::kConstraint + " hard or adaptive"},
      {Setting::kLambda, !flags.lambda.empty(), rules == RouterRules::kLambda,
       Setting::kRouter + " cache-prior"},
      {Setting::kEta, !flags.eta.empty(), adaptive, Setting::kConstraint + " adaptive"},
      {Setting::kCumsumP, !flags.p.empty(), rules == RouterRules::kShare, Setting::kRouter + " cumsum"},
      {Setting::kAlpha, !flags.alpha.empty(), smoe, Setting::kRouter + " smoe"},
      {Setting::kMerge, !flags.merge.empty(), smoe, Setting::kRouter + " smoe"},
      {Setting::kRenorm, !flags.renorm.empty(), smoe, Setting::kRouter + " smoe"},
      {Setting::kResident, !flags.resident.empty(), smoe && chosen.device_cache != nullptr,
       Setting::kRouter + " smoe and " + Setting::kDevice},
      {Setting::kTopJ, flags.top_j.has_value(), chosen.router->lossy && !chosen.router->scripted && !smoe,
       Setting::kRouter + " cache-prior or cumsum"},
  };
  for (const auto& [setting, given, acts, needs] : all) {
    if (!given || acts) continue;
    throw Error(ErrorKind::kUsage, "this flag has no effect here")
        .in(setting)
        .expected(needs)
        .found(chosen_text(needs, options, chosen))
        .fix("give what the flag needs, or leave " + setting + " out");
  }
}

}  // namespace sluice::app
