#include "engine/forward/models.h"

#include "base/error.h"

namespace sluice::engine::models {

void feed_forward(LayerRun& run) {
  run.norm(Role::kPostAttentionNorm);
  if (run.sparse())
    run.moe_block();
  else
    run.mlp();
}

LayerForward find_forward(std::string_view model_type) {
  static constexpr struct {
    std::string_view model_type;
    LayerForward forward;
  } kForwards[] = {
      {"deepseek", {deepseek_attention, feed_forward}},
      {"deepseek_v2", {deepseek_v2_attention, feed_forward}},
      {"gpt_oss", {gpt_oss_attention, feed_forward}},
      {"mixtral", {mixtral_attention, feed_forward}},
      {"olmoe", {olmoe_attention, feed_forward}},
      {"qwen2_moe", {qwen2_moe_attention, feed_forward}},
      {"qwen3_moe", {qwen3_moe_attention, feed_forward}},
      {"switch_transformers", {switch_transformers_attention, feed_forward}},
      {"xverse", {xverse_attention, feed_forward}},
  };
  for (const auto& entry : kForwards)
    if (entry.model_type == model_type) return entry.forward;
  throw Error(ErrorKind::kUnsupported, "this model_type has no forward pass")
      .in("config.json")
      .found(model_type);
}

EncoderForward find_encoder(std::string_view model_type) {
  if (model_type == "switch_transformers")
    return {switch_transformers_keys, {switch_transformers_encoder_attention, feed_forward}};
  return {};
}

}  // namespace sluice::engine::models
