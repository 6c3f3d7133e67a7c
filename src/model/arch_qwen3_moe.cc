// Qwen3-30B-A3B, Qwen3-235B-A22B (model_type qwen3_moe).
// Grouped-query attention with an explicit head size and an RMSNorm over each head of q and k before RoPE; no
// biases in published models. Every step-th layer has experts; there are no shared experts.
#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = read_decoder(json, {.max_positions = 32768, .rms_eps = 1e-6, .window = true});
  config.attention = read_gqa(json, config, {.kv_heads = 4, .rope_theta = 10000.0});
  config.attention.qk_norm = QkNorm::kPerHead;
  config.attention.qkv_bias = config.attention.o_bias = json.boolean_or("attention_bias", false);
  if (json.boolean_or("use_sliding_window", false)) {  // Hugging Face: then all layers slide
    config.attention.sliding_window = read_size_or(json, "sliding_window", 4096, kMaxPositions);
  }

  config.sparse = read_sparse_step(json, config.layers);
  config.dense_width = read_size_or(json, "intermediate_size", 6144, kMaxWidth);
  // Hugging Face also writes num_experts under the name that its other classes use.
  const bool local = json.has("num_local_experts") && !json.has("num_experts");
  config.moe = read_experts(json, config,
                            {.count_key = local ? "num_local_experts" : "num_experts",
                             .count = 128,
                             .top_k_key = "num_experts_per_tok",
                             .top_k = 8,
                             .width_key = "moe_intermediate_size",
                             .width = 768});
  config.moe.renormalise = json.boolean_or("norm_topk_prob", false);
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
    } else {
      list.dense_mlp();
    }
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kQwen3Moe = {"qwen3_moe", "Qwen3-30B-A3B, Qwen3-235B-A22B (SPEC §9)", parse,
                                       tensors, carries_common};

}  // namespace sluice::model
