// XVERSE-MoE-A4.2B (model_type xverse).
// Plain multi-head attention. Every layer has experts and num_shared_experts shared experts, which are stored
// as one wide MLP and added without a gate. The router is stored and applied in fp32; its weights are divided
// by (their sum + 1e-6).
#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = read_decoder(json, {.max_positions = 8192, .rms_eps = 1e-6, .bos = {2}, .eos = {3}});
  config.attention = read_gqa(json, config, {.rope_theta = 500000.0});
  if (config.attention.kv_heads != config.attention.heads) {
    json.fail("num_key_value_heads", "num_attention_heads (" + std::to_string(config.attention.heads) + ")");
  }

  // XVERSE's dense models share the model_type; this refuses a file without num_experts.
  config.moe = read_experts(
      json, config, {.count_key = "num_experts", .top_k_key = "moe_top_k", .width_key = "intermediate_size"});
  config.moe.shared_width = read_shared_width(json, "num_shared_experts", config.moe.width, 0);
  config.moe.renormalise = true;
  config.moe.renormalise_epsilon = 1e-6f;
  return config;
}

std::vector<TensorSpec> tensors(const ModelConfig& config) {
  TensorList list(config);
  list.embedding();
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    list.enter_layer(layer);
    list.input_norm();
    list.gqa();
    list.post_attention_norm();
    list.router("mlp.router");
    list.experts("mlp.experts");
    list.shared_experts("mlp.shared_experts");
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kXverse = {"xverse", "XVERSE-MoE-A4.2B (SPEC §9)", parse, tensors, carries_common};

}  // namespace sluice::model
