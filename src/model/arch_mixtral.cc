// Mixtral-8x7B, Mixtral-8x22B (model_type mixtral).
// Grouped-query attention, in early models over a sliding window. Every layer has experts that are as wide as
// a dense MLP and called w1 (gate), w3 (up) and w2 (down). The chosen weights always sum to one.
#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = read_decoder(json, {.max_positions = 131072, .rms_eps = 1e-5, .bos = {1}, .eos = {2}});
  // An absent field means the class's default; an explicit null means that every head has its own keys and
  // values.
  const bool null_kv_heads = json.value().contains("num_key_value_heads") && !json.has("num_key_value_heads");
  config.attention = read_gqa(json, config, {.kv_heads = null_kv_heads ? 0u : 8u, .rope_theta = 1000000.0});
  config.attention.sliding_window = read_size_or(json, "sliding_window", 0, kMaxPositions);

  const bool shared_name = json.has("num_experts") && !json.has("num_local_experts");
  config.moe = read_experts(json, config,
                            {.count_key = shared_name ? "num_experts" : "num_local_experts",
                             .count = 8,
                             .top_k_key = "num_experts_per_tok",
                             .top_k = 2,
                             .width_key = "intermediate_size",
                             .width = 14336});
  config.moe.renormalise = true;
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
    list.router("block_sparse_moe.gate");
    list.experts("block_sparse_moe.experts", {.gate = "w1", .up = "w3", .down = "w2"});
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kMixtral = {"mixtral", "Mixtral 8x7B, 8x22B (arXiv 2401.04088; SPEC §9)", parse,
                                      tensors, carries_common};

}  // namespace sluice::model
