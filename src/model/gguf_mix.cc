#include "model/gguf_mix.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "codec/blocks/quantise.h"

namespace sluice::model {
namespace {

// Layers that get more bits: the first and the last eighth, and every third between them.
bool gets_more_bits(std::uint32_t layer, std::uint32_t layers) {
  const std::uint32_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

bool is_down(Role role) {
  return role == Role::kExpertDown || role == Role::kMlpDown || role == Role::kSharedDown;
}

// The matrix that logits come from.
bool makes_logits(const TensorSpec& spec, const ModelConfig& config) {
  return spec.role == Role::kHead || (spec.role == Role::kEmbedding && config.tied_head);
}

// What the medium mixes have in common; "" for the mix's own type. Models of eight experts are small in their
// attention, which gets eight bits.
std::string_view more_for_some(const TensorSpec& spec, const ModelConfig& config) {
  if (config.moe.mxfp4 && spec.expert >= 0) return "MXFP4";  // as published
  if (makes_logits(spec, config)) return "Q6_K";
  const auto layer = static_cast<std::uint32_t>(std::max(spec.layer, 0));
  if (config.moe.experts == 8 && (spec.role == Role::kV || spec.role == Role::kK)) return "Q8_0";
  if ((spec.role == Role::kV || is_down(spec.role)) && gets_more_bits(layer, config.layers)) return "Q6_K";
  return "";
}
std::string_view q4_k_m(const TensorSpec& spec, const ModelConfig& config) {
  if (config.moe.experts == 8 && spec.role == Role::kO) return "Q5_K";
  return more_for_some(spec, config);
}
std::string_view q5_k_m(const TensorSpec& spec, const ModelConfig& config) {
  return more_for_some(spec, config);
}
// Experts alone in four bits.
std::string_view mxfp4_moe(const TensorSpec& spec, const ModelConfig&) {
  return spec.expert >= 0 ? "MXFP4" : "";
}

struct Mix {
  std::string_view name, type;
  std::string_view (*rule)(const TensorSpec&, const ModelConfig&);
};
constexpr Mix kMixes[] = {
    {"q4_k_m", "Q4_K", q4_k_m}, {"q5_k_m", "Q5_K", q5_k_m}, {"mxfp4_moe", "Q8_0", mxfp4_moe}};

constexpr std::uint32_t kMostTypes = 64;

const store::GgufType& type_named(std::string_view name) {
  for (std::uint32_t number = 0; number < kMostTypes; ++number)
    if (const store::GgufType* const type = store::gguf_type(number); type != nullptr && type->name == name)
      return *type;
  SLUICE_CHECK(false, std::string(name));
  return *store::gguf_type(0);
}

bool is_written(const store::GgufType& type) {
  return type.format != nullptr && (type.words || codec::can_quantise(*type.format));
}

// The type in place of one whose blocks of 256 do not fit.
struct InPlace {
  std::string_view type, other;
};
constexpr InPlace kInPlace[] = {{"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"Q4_K", "Q5_0"},
                                {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}, {"IQ4_XS", "IQ4_NL"}};

const store::GgufType& that_fits(const store::GgufType& type, std::uint64_t columns) {
  if (columns % type.elements == 0) return type;
  const auto* const other = std::ranges::find(kInPlace, type.name, &InPlace::type);
  if (other != std::end(kInPlace)) return that_fits(type_named(other->other), columns);
  return type_named("F16");  // rows that are no multiple of 32
}

}  // namespace

std::vector<std::string> GgufMix::names() {
  std::vector<std::string> names;
  for (const Mix& mix : kMixes) names.emplace_back(mix.name);
  for (std::uint32_t number = 0; number < kMostTypes; ++number)
    if (const store::GgufType* const type = store::gguf_type(number); type != nullptr && is_written(*type))
      names.emplace_back(type->format->name);
  return names;
}

GgufMix::GgufMix(std::string_view name) {
  const auto* const mix = std::ranges::find(kMixes, name, &Mix::name);
  if (mix != std::end(kMixes)) {
    type_ = mix->type;
    rule_ = mix->rule;
    return;
  }
  for (std::uint32_t number = 0; number < kMostTypes; ++number)
    if (const store::GgufType* const type = store::gguf_type(number);
        type != nullptr && is_written(*type) && type->format->name == name) {
      type_ = type->name;
      return;
    }
  throw unknown_name(Setting::kFormat, name, names(), "there is no such format of weights");
}

const store::GgufType& GgufMix::of(const TensorSpec& spec, const ModelConfig& config,
                                   std::uint64_t columns) const {
  const bool vector = spec.shape.size() < 2 || spec.shape[0] == 1 || is_expert_bias(spec.role);
  if (vector || spec.role == Role::kRouter) return type_named("F32");
  const std::string_view ruled = rule_ == nullptr ? std::string_view() : rule_(spec, config);
  return that_fits(type_named(ruled.empty() ? type_ : ruled), columns);
}

}  // namespace sluice::model
