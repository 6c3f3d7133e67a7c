#include "engine/forward/models/models.h"

#include "base/error.h"

namespace sluice::engine::models {

LayerForward find_forward(std::string_view model_type) {
  static constexpr struct {
    std::string_view model_type;
    LayerForward forward;
  } kForwards[] = {
      {"deepseek", deepseek},   {"deepseek_v2", deepseek_v2},
      {"mixtral", mixtral},     {"olmoe", olmoe},
      {"qwen2_moe", qwen2_moe}, {"qwen3_moe", qwen3_moe},
      {"xverse", xverse},       {"switch_transformers", switch_transformers},
  };
  for (const auto& entry : kForwards)
    if (entry.model_type == model_type) return entry.forward;
  throw Error(ErrorKind::kUnsupported, "this model_type has no forward pass")
      .in("config.json")
      .found(model_type);
}

EncoderForward find_encoder(std::string_view model_type) {
  if (model_type == "switch_transformers") return {switch_transformers_keys, switch_transformers_encoder};
  return {};
}

}  // namespace sluice::engine::models
