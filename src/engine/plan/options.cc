#include "engine/plan/options.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "device/choice/device_spec.h"

namespace sluice::engine {

Math parse_math(std::string_view text) {
  if (text == "auto") return Math::kAuto;
  if (text == "f32") return Math::kF32;
  throw unknown_name(Setting::kMath, text, {"auto", "f32"}, "unknown arithmetic",
                     "leave " + Setting::kMath + " out for auto");
}

std::optional<DType> parse_kv(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "bf16") return DType::kBF16;
  if (text == "f32") return DType::kF32;
  if (text == "int8") return DType::kI8;
  throw unknown_name(Setting::kKv, text, {"auto", "bf16", "f32", "int8"},
                     "unknown form of the key/value cache", "leave " + Setting::kKv + " out for auto");
}

kernels::ActivationForm parse_activations(std::string_view text) {
  if (text == "fp32") return kernels::ActivationForm::kF32;
  if (text == "int8") return kernels::ActivationForm::kInt8;
  throw unknown_name(Setting::kActivations, text, {"fp32", "int8"}, "unknown form of activations",
                     "leave " + Setting::kActivations + " out for the default");
}

std::string_view activations_name(kernels::ActivationForm form) {
  return form == kernels::ActivationForm::kInt8 ? "int8" : "fp32";
}

namespace {

constexpr std::string_view kDraftNames[] = {"none", "ngram"};
constexpr std::string_view kScopes[] = {"global", "layer"}, kKeeps[] = {"full", "packed"},
                           kDeviceKeeps[] = {"auto", "full", "packed"},
                           kDenses[] = {"auto", "words", "packed"},
                           kDensePlaces[] = {"host", "device", "auto"}, kDeviceMaths[] = {"same", "fast"};

// `names`: by value.
template <class Value, std::size_t n>
Value value_of(Setting setting, const std::string_view (&names)[n], std::string_view text) {
  const auto found = std::ranges::find(names, text);
  if (found != std::end(names)) return static_cast<Value>(found - std::begin(names));
  throw unknown_name(setting, text, {std::begin(names), std::end(names)}, "unknown value");
}

}  // namespace

DraftKind parse_draft(std::string_view text) {
  const auto found = std::ranges::find(kDraftNames, text);
  if (found != std::end(kDraftNames)) return static_cast<DraftKind>(found - std::begin(kDraftNames));
  throw unknown_name(Setting::kDraft, text, {std::begin(kDraftNames), std::end(kDraftNames)},
                     "unknown kind of draft", "leave " + Setting::kDraft + " out");
}

std::string_view draft_name(DraftKind kind) { return kDraftNames[static_cast<std::size_t>(kind)]; }

CacheScope parse_cache_scope(std::string_view text) {
  return value_of<CacheScope>(Setting::kCacheScope, kScopes, text);
}

std::string_view cache_scope_name(CacheScope scope) { return kScopes[static_cast<std::size_t>(scope)]; }

Keep parse_keep(std::string_view text) { return value_of<Keep>(Setting::kKeep, kKeeps, text); }

std::string_view keep_name(Keep keep) { return kKeeps[static_cast<std::size_t>(keep)]; }

DeviceKeep parse_device_keep(std::string_view text) {
  return value_of<DeviceKeep>(Setting::kDeviceKeep, kDeviceKeeps, text);
}

DenseForm parse_dense(std::string_view text) { return value_of<DenseForm>(Setting::kDense, kDenses, text); }

DenseOn parse_dense_on(std::string_view text) {
  return value_of<DenseOn>(Setting::kDenseOn, kDensePlaces, text);
}

DeviceMath parse_device_math(std::string_view text) {
  return value_of<DeviceMath>(Setting::kDeviceMath, kDeviceMaths, text);
}

std::string_view device_math_name(DeviceMath math) { return kDeviceMaths[static_cast<std::size_t>(math)]; }

bool EngineOptions::has_device() const {
  return !device.empty() && device != device::kNoDevice && device != device::kAnyDevice;
}

}  // namespace sluice::engine
