#include "engine/plan/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/plan/settled_device.h"
#include "experts/device_caches.h"
#include "experts/device_presets.h"
#include "experts/registry.h"
#include "kernels/context.h"

namespace sluice::engine {
namespace {

// Why the host keeps words whatever the device does; empty: it need not.
std::string words_on_host(const EngineOptions& options) {
  if (options.keep == Keep::kFull) return Setting::kKeep + " full";
  const experts::CachePolicy& cache = options.cache.or_usual(options.preset.host().cache);
  if (!cache.pooled) return "";
  return "cache " + std::string(cache.name) + ", which keeps some experts as words";
}

void check_can_be_packed(const EngineOptions& options, const ModelFacts& facts) {
  Error refused(ErrorKind::kUsage, "slots of the device cannot hold experts packed");
  refused.in(Setting::kDeviceKeep);
  if (facts.sliced())
    throw refused.expected("full or auto: slots hold slices as they are stored")
        .found(facts.path + ", of family sliced")
        .fix("leave " + Setting::kDeviceKeep + " out");
  if (!facts.split)
    throw refused.expected("experts that are stored packed")
        .found(facts.path + ", which has them as they were published")
        .fix("pack the model: sluice pack " + facts.path + " " + flag(Setting::kOutput) +
             " NAME.sluice; or leave " + Setting::kDeviceKeep + " out");
  if (!facts.packable)
    throw refused
        .expected(
            "experts that are computed with as they are packed: codec native, matrices with 128 columns "
            "or a multiple")
        .found(facts.path + ", whose experts are decoded first")
        .fix("leave " + Setting::kDeviceKeep + " out, or pack with " + Setting::kCodec +
             " native if the columns allow");
  if (const std::string words = words_on_host(options); !words.empty())
    throw refused.expected(Setting::kKeep + " packed: what the host has as words is not packed again")
        .found(words)
        .fix("give " + Setting::kKeep + " packed without another preset or cache of pools, or leave " +
             Setting::kDeviceKeep + " out");
}

SlotChoice choose_usual_slots(const EngineOptions& options, const ModelFacts& facts) {
  const experts::DevicePreset* const preset = options.preset.device();
  const bool preset_packs = preset != nullptr && preset->packed_slots;
  if (!facts.split) return {false, "the model is not packed"};
  if (!facts.packable) return {false, "experts of this store are decoded before they are computed with"};
  if (!preset_packs && options.keep != Keep::kPacked)
    return {false, "the host keeps words; " + Setting::kDeviceKeep + " packed changes both"};
  if (const std::string words = words_on_host(options); !words.empty())
    return {false, "the host has " + words};
  return {true, preset_packs ? "as the preset says" : "as the host keeps them"};
}

// A played link without a rate is as fast as this machine moves bytes.
void limit_link(double most, DeviceChoice& choice) {
  const device::EmulatedSpec* const played = choice.spec.emulated();
  std::optional<double> own;  // as a clock on the wall sees it
  if (played != nullptr) {
    constexpr double kNoLimit = std::numeric_limits<double>::infinity();
    if (played->link_bytes_per_s.value_or(kNoLimit) <= most) return;
    own = choice.spec.link_limit().value_or(kNoLimit);
  }
  choice.link_limit = {own};
  choice.spec.limit_link(most);
}

// A GPU has the host's bits where the host sums in one order, which units that round activations do not.
void check_gpu_math(const EngineOptions& options) {
  const Isa isa = parse_isa(options.isa);
  if (options.math != Math::kAuto || kernels::rounded_products(isa) == kernels::Products::kExact) return;
  throw Error(
      ErrorKind::kUsage,
      "this CPU multiplies in an order of its own, with rounded activations, which no GPU has: a text "
      "would depend on where experts are computed")
      .in(Setting::kMath)
      .expected("f32 beside " + Setting::kDevice + " cuda")
      .found(fmt::format("auto, and the instruction set {}", isa_name(isa)))
      .fix("give " + Setting::kMath + " f32, or leave " + Setting::kDevice + " out");
}

void check_played_math(const EngineOptions& options) {
  if (options.device_math != DeviceMath::kFast) return;
  throw Error(ErrorKind::kUsage, "an emulated device computes with the functions of the host")
      .in(Setting::kDeviceMath)
      .expected("same, or " + Setting::kDevice + " cuda")
      .found("fast beside " + options.device)
      .fix("leave " + Setting::kDeviceMath + " out");
}

void check_gpu_activations(const EngineOptions& options, const ModelFacts& facts) {
  if (!facts.blocks || options.activations != kernels::ActivationForm::kInt8) return;
  throw Error(ErrorKind::kUsage, "a GPU multiplies blocks of codes with fp32 activations alone")
      .in(Setting::kActivations)
      .expected("fp32 beside " + Setting::kDevice + " cuda")
      .found("int8")
      .fix("leave " + Setting::kActivations + " out, which is fp32, or leave " + Setting::kDevice + " out");
}

}  // namespace

SlotChoice choose_slots(const EngineOptions& options, const ModelFacts& facts) {
  if (!options.has_device() || !facts.has_experts) return {};
  if (options.device_keep == DeviceKeep::kAuto) return choose_usual_slots(options, facts);
  if (options.device_keep == DeviceKeep::kPacked) check_can_be_packed(options, facts);
  return {options.device_keep == DeviceKeep::kPacked, "as asked"};
}

SlotChoice choose_slice_slots(const EngineOptions& options, experts::PrecisionMode precision) {
  using experts::Part;
  if (options.device_keep == DeviceKeep::kFull) return {.why = "as asked", .slices = Part::kMsb | Part::kLsb};
  if (precision == experts::PrecisionMode::kLow)
    return {.why = "decode steps compute with the MSB slice alone", .slices = Part::kMsb};
  return {.why = "decode steps compute with both slices, or may", .slices = Part::kMsb | Part::kLsb};
}

std::optional<DeviceChoice> device_of(const EngineOptions& options, const ModelFacts& facts) {
  if (!options.has_device()) {
    if (const auto setting = given_device_setting(options))
      throw Error(ErrorKind::kUsage, "there is no device")
          .in(*setting)
          .expected(Setting::kDevice + " beside it")
          .found(options.device_lack.empty() ? "none" : "none: " + options.device_lack)
          .fix("leave it out, or give " + Setting::kDevice + " cuda or emulated");
    return std::nullopt;
  }
  if (!facts.has_experts)
    throw Error(ErrorKind::kUsage, "a device computes routed experts, and this model has none")
        .in(Setting::kDevice)
        .expected("a mixture of experts")
        .found(facts.path + ", which has no experts")
        .fix("leave " + Setting::kDevice + " out");
  const bool keeps_planes = options.keep == Keep::kPacked && !facts.packable;
  if (options.tiers == experts::Tiers::kExclusive && keeps_planes)
    throw Error(ErrorKind::kUsage,
                "the host keeps experts packed, and of this store the device has them decoded: what comes "
                "back is not packed again")
        .in(Setting::kTiers)
        .expected("inclusive, or " + Setting::kKeep + " full")
        .found("exclusive, and " + Setting::kKeep + " packed")
        .fix("give one of these");
  const device::DeviceSpec spec = device::parse_device_spec(options.device, mark(Setting::kDevice));
  if (!spec.is_played()) {
    check_gpu_math(options);
    check_gpu_activations(options, facts);
  } else {
    check_played_math(options);
  }
  DeviceChoice choice{
      .spec = spec,
      .memory = options.device_memory,
      .slots = options.device_slots,
      .dense_on = options.dense_on.value_or(spec.is_played() ? DenseOn::kHost : DenseOn::kAuto),
      .math = options.device_math.value_or(DeviceMath::kSame),
      .popularity = options.popularity,
      .popularity_name = options.popularity_name};
  if (options.link_bytes_per_s) limit_link(*options.link_bytes_per_s, choice);
  if (!spec.is_played()) choice.experts_lack = facts.gpus_lack;
  return choice;
}

void check_device_math(const EngineOptions& options, const PolicyPlan& policies) {
  if (options.device_math != DeviceMath::kFast || options.allow_timed_bits) return;
  for (const experts::PlacementPolicy* const one : {policies.placement, policies.prefill_placement})
    if (one != nullptr && (one->timed || policies.device_may_rest))
      throw Error(ErrorKind::kUsage,
                  "a device of this math has other bits than the host, and measured times say which of both "
                  "computes an expert: a text would not be the same again")
          .in(Setting::kDeviceMath)
          .expected("same, or a " + Setting::kPlacement + " that no time changes: device, cpu, layer-split")
          .found(fmt::format("fast, and the placement {}", one->name))
          .fix("give " + Setting::kPlacement + " device, or " + Setting::kTimedBits + " if that may be");
}

void leave_experts_to_host(EnginePlan& plan) {
  plan.device->slots = 0;
  plan.device->prefetch_size = 0;
  const auto leave = [](PolicyPlan& policies) {
    policies.placement = experts::Named<experts::PlacementPolicy>("cpu").row();
    policies.prefill_placement = nullptr;
    policies.tiers = experts::Tiers::kInclusive;
    policies.device_may_rest = false;
  };
  leave(plan.policies);
  if (plan.where_all_fits) leave(*plan.where_all_fits);
}

unsigned compute_threads(const EnginePlan& plan, unsigned cpus) {
  constexpr unsigned kLeast = 8, kLeft = 2;
  if (plan.threads != 0) return plan.threads;
  return plan.device && !plan.device->spec.is_played() && cpus >= kLeast ? cpus - kLeft : cpus;
}

std::uint32_t prefetch_size_of(const EngineOptions& options, const PolicyPlan& policies,
                               const ModelFacts& facts) {
  if (!policies.prefetch->prefetches) {
    if (!options.prefetch_size) return 0;
    throw Error(ErrorKind::kUsage, "nothing is prefetched")
        .in(Setting::kPrefetchSize)
        .expected("another " + Setting::kPrefetch + " than none")
        .found(std::to_string(*options.prefetch_size))
        .fix("leave it out, or give " + Setting::kPrefetch + " stream");
  }
  if (options.prefetch_size)
    experts::check_layer_has(*options.prefetch_size, facts.experts, Setting::kPrefetchSize);
  const std::uint32_t usual = experts::usual_prefetch_size(
      options.prefetch.empty() ? policies.device_preset : nullptr, facts.experts);
  return std::min(options.prefetch_size.value_or(usual), facts.experts);
}

}  // namespace sluice::engine
