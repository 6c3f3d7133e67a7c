// Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B (model_type qwen2_moe).
// Grouped-query attention with biases on q, k and v. Every step-th layer has experts, and one shared expert
// whose output is weighted by sigmoid(shared_expert_gate · x).
#include <algorithm>

#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

// The layers with a sliding window: those that layer_types names, or else, as Hugging Face fills it in, every
// other layer below max_window_layers.
std::vector<bool> read_sliding_layers(const JsonObject& json, std::uint32_t layers, bool use) {
  std::vector<bool> sliding = read_layer_types(json, layers);
  if (!sliding.empty()) return sliding;
  sliding.assign(layers, false);
  if (use) {
    const std::int64_t below = json.integer_or("max_window_layers", 28, 0, kMaxPositions);
    for (std::uint32_t layer = 0; layer < layers && layer < below; layer += 2) sliding[layer] = true;
  }
  return sliding;
}

std::vector<std::uint32_t> read_windows(const JsonObject& json, std::uint32_t layers) {
  const bool use = json.boolean_or("use_sliding_window", false);
  const std::vector<bool> sliding = read_sliding_layers(json, layers, use);
  if (std::ranges::find(sliding, true) == sliding.end()) return {};
  if (!use) json.fail("use_sliding_window", "true, because layer_types names sliding_attention");
  const std::uint32_t width = read_size_or(json, "sliding_window", 4096, kMaxPositions);
  std::vector<std::uint32_t> windows(layers);
  for (std::uint32_t layer = 0; layer < layers; ++layer) windows[layer] = sliding[layer] ? width : 0;
  return windows;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = read_decoder(json, {.max_positions = 32768, .rms_eps = 1e-6, .window = true});
  config.attention = read_gqa(json, config, {.kv_heads = 16, .rope_theta = 10000.0});
  config.attention.qkv_bias = json.boolean_or("qkv_bias", true);
  config.attention.layer_windows = read_windows(json, config.layers);

  config.sparse = read_sparse_step(json, config.layers);
  config.dense_width = read_size_or(json, "intermediate_size", 5632, kMaxWidth);
  config.moe = read_experts(json, config,
                            {.count_key = "num_experts",
                             .count = 60,
                             .top_k_key = "num_experts_per_tok",
                             .top_k = 4,
                             .width_key = "moe_intermediate_size",
                             .width = 1408});
  config.moe.shared_width = read_size_or(json, "shared_expert_intermediate_size", 5632, kMaxWidth);
  config.moe.shared_gate = true;
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
      list.shared_experts("mlp.shared_expert");
      list.shared_expert_gate("mlp.shared_expert_gate");
    } else {
      list.dense_mlp();
    }
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kQwen2Moe = {"qwen2_moe", "Qwen1.5-MoE, Qwen2-57B-A14B (SPEC §9)", parse, tensors,
                                       carries_common};

}  // namespace sluice::model
