#include "engine/plan/options.h"

#include "base/error.h"
#include "base/setting.h"
#include "experts/combination.h"
#include "experts/routing/slice_names.h"

namespace sluice::engine {

Math parse_math(std::string_view text) {
  if (text == "auto") return Math::kAuto;
  if (text == "f32") return Math::kF32;
  throw Error(ErrorKind::kUsage, "unknown arithmetic")
      .in(Setting::kMath)
      .expected("auto or f32")
      .found(text)
      .fix("leave " + Setting::kMath + " out for auto");
}

std::optional<DType> parse_kv(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "bf16") return DType::kBF16;
  if (text == "f32") return DType::kF32;
  if (text == "int8") return DType::kI8;
  throw Error(ErrorKind::kUsage, "unknown form of the key/value cache")
      .in(Setting::kKv)
      .expected("auto, bf16, f32 or int8")
      .found(text)
      .fix("leave " + Setting::kKv + " out for auto");
}

kernels::ActivationForm parse_activations(std::string_view text) {
  if (text == "fp32") return kernels::ActivationForm::kF32;
  if (text == "int8") return kernels::ActivationForm::kInt8;
  throw Error(ErrorKind::kUsage, "unknown form of activations")
      .in(Setting::kActivations)
      .expected("fp32 or int8")
      .found(text)
      .fix("leave " + Setting::kActivations + " out for the default");
}

std::string_view activations_name(kernels::ActivationForm form) {
  return form == kernels::ActivationForm::kInt8 ? "int8" : "fp32";
}

EngineOptions with_preset(EngineOptions options, bool split, bool sliced) {
  if (options.preset.empty()) options.preset = "auto";
  const bool chosen = options.preset != "auto";
  if (options.preset == "auto" && split && options.keep == "full") options.preset = "zipmoe";
  const experts::Preset& preset = experts::find_preset(options.preset);
  if (options.precision == experts::PrecisionMode::kFull) options.precision = preset.precision;
  const auto fill = [](std::string& value, std::string_view of_preset) {
    if (value.empty()) value = of_preset;
  };
  fill(options.router, preset.router);
  fill(options.cache, sliced ? experts::usual_slice_cache(options.precision) : preset.cache);
  // Where the user chose nothing, prefetching uses the disk's idle time. Exceptions: a preset runs as its
  // paper compares it; a recorded run is counted as a replay counts it, which has no notion of time; and
  // missing slices that other experts would replace are not worth reading.
  const bool replaced = sliced && experts::find_router(options.router).lossy;
  fill(options.prefetch, chosen || options.recording > 0 || replaced ? preset.prefetch : "lookahead");
  fill(options.scheduler, preset.scheduler);
  fill(options.placement, preset.placement);
  if (!options.constraint) options.constraint = preset.constraint;
  options.slices.warmup.rho = options.rho.value_or(experts::usual_rho(options.precision));
  options.sharing = preset.sharing;
  options.whole_layers = preset.whole_layers;
  options.synchronous = preset.synchronous;
  return options;
}

namespace {

experts::Family family_of_experts(store::Family family) {
  switch (family) {
    case store::Family::kRaw:
      return experts::Family::kRaw;
    case store::Family::kSplit:
      return experts::Family::kSplit;
    case store::Family::kSliced:
      return experts::Family::kSliced;
  }
  SLUICE_CHECK(false, std::string(store::family_name(family)));
}

}  // namespace

void check_combination(const EngineOptions& options, store::Family family) {
  const std::string_view routers[] = {options.router};
  experts::check_combination({.family = family_of_experts(family),
                              .routers = routers,
                              .cache = options.cache,
                              .precision = options.precision,
                              .constraint = options.constraint.value(),
                              .scheduler = options.scheduler,
                              .prefetch = options.prefetch,
                              .whole_layers = options.whole_layers,
                              .slices = &options.slices,
                              .loss_limited = options.contract.has_value()});
}

}  // namespace sluice::engine
