// deepseek-moe-16b (model_type deepseek).
// Plain multi-head attention. The first layers are dense; after them every moe_layer_freq-th layer has
// fine-grained experts and n_shared_experts shared experts, which are stored as one wide MLP and added
// without a gate.
#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

ModelConfig parse(const JsonObject& json) {
  require_string(json, "scoring_func", "softmax");
  ModelConfig config =
      read_decoder(json, {.max_positions = 2048, .rms_eps = 1e-6, .bos = {100000}, .eos = {100001}});
  config.attention = read_gqa(json, config, {.rope_theta = 10000.0});
  config.attention.qkv_bias = config.attention.o_bias = json.boolean_or("attention_bias", false);
  config.mtp_layers =
      static_cast<std::uint32_t>(json.integer_or("num_nextn_predict_layers", 0, 0, kMaxLayers));

  config.sparse = read_first_dense(json, config.layers);
  config.dense_width = read_size_or(json, "intermediate_size", 11008, kMaxWidth);
  config.moe = read_experts(json, config,
                            {.count_key = "n_routed_experts",
                             .top_k_key = "num_experts_per_tok",
                             .width_key = "moe_intermediate_size",
                             .width = 1407});
  config.moe.shared_width = read_shared_width(json, "n_shared_experts", config.moe.width, 0);
  // The published code leaves a single expert's weight alone.
  config.moe.renormalise = json.boolean_or("norm_topk_prob", false) && config.moe.top_k > 1;
  config.moe.renormalise_epsilon = 1e-20f;
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
    if (config.sparse[layer]) {
      list.router("mlp.gate");
      list.experts("mlp.experts");
      list.shared_experts("mlp.shared_experts");
    } else {
      list.dense_mlp();
    }
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kDeepseek = {
    "deepseek", "deepseek-moe-16b (DeepSeekMoE, arXiv 2401.06066; SPEC §9)", parse, tensors, carries_common};

}  // namespace sluice::model
