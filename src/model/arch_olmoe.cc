// OLMoE-1B-7B (model_type olmoe).
// Attention with an RMSNorm over the whole q and k projections before they are split into heads, and q, k and
// v clamped to ±clip_qkv if it is set. Every layer has experts; there are no shared experts.
#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = read_decoder(json, {.max_positions = 4096, .rms_eps = 1e-5, .eos = {50279}});
  config.attention = read_gqa(json, config, {.rope_theta = 10000.0});
  config.attention.qk_norm = QkNorm::kWhole;
  config.attention.qkv_bias = config.attention.o_bias = json.boolean_or("attention_bias", false);
  if (json.has("clip_qkv")) config.attention.clip_qkv = static_cast<float>(json.real("clip_qkv", 1e-6, 1e6));
  if (json.has("sliding_window")) unsupported(json, "sliding_window", "null");

  config.moe = read_experts(json, config,
                            {.count_key = "num_experts",
                             .count = 64,
                             .top_k_key = "num_experts_per_tok",
                             .top_k = 8,
                             .width_key = "intermediate_size",
                             .width = 2048});
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
    list.router("mlp.gate");
    list.experts("mlp.experts");
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kOlmoe = {"olmoe", "OLMoE-1B-7B (arXiv 2409.02060; SPEC §9)", parse, tensors,
                                    carries_common};

}  // namespace sluice::model
