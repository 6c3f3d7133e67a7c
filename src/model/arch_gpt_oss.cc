// gpt-oss-20b and gpt-oss-120b (model_type gpt_oss).
// Grouped-query attention with biases and one learned score a head beside those of the keys; every other
// layer sees a window. Every layer has experts, chosen by a router with a bias. The rows of an expert's first
// matrix are those of gate and up by turns; a GGUF file has two matrices (gguf_config.h). Published experts
// are stored in MXFP4.
#include <algorithm>

#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

constexpr MlpNames kPairs = {.gate = "", .up = "gate_up_proj", .down = "down_proj"};
constexpr std::uint32_t kBlock = 32;  // elements of a row that share a scale in MXFP4

// Even layers see a window unless layer_types says otherwise.
std::vector<std::uint32_t> read_windows(const JsonObject& json, std::uint32_t layers) {
  std::vector<bool> sliding = read_layer_types(json, layers);
  if (sliding.empty())
    for (std::uint32_t layer = 0; layer < layers; ++layer) sliding.push_back(layer % 2 == 0);
  if (std::ranges::find(sliding, true) == sliding.end()) return {};
  if (json.value().contains("sliding_window") && !json.has("sliding_window"))
    json.fail("sliding_window", "a width in tokens, because some layers see a window");
  const std::uint32_t width = read_size_or(json, "sliding_window", 128, kMaxPositions);
  std::vector<std::uint32_t> windows(layers);
  for (std::uint32_t layer = 0; layer < layers; ++layer) windows[layer] = sliding[layer] ? width : 0;
  return windows;
}

AttentionConfig read_attention(const JsonObject& json, const ModelConfig& config) {
  const bool null_kv_heads = json.value().contains("num_key_value_heads") && !json.has("num_key_value_heads");
  AttentionConfig attention =
      read_gqa(json, config, {.kv_heads = null_kv_heads ? 0u : 8u, .head_dim = 64, .rope_theta = 150000.0});
  // The published class scales positions even if the file does not say so.
  if (!json.has("rope_scaling") && !json.has("rope_parameters")) {
    attention.rope.scaling = RopeScaling::kYarn;
    attention.rope.factor = 32.0;
    attention.rope.original_max_positions = 4096;
    attention.rope.truncate = false;
  }
  attention.qkv_bias = attention.o_bias = json.boolean_or("attention_bias", true);
  attention.sinks = true;
  attention.layer_windows = read_windows(json, config.layers);
  return attention;
}

// The number of experts of a token has two names; published files have both.
std::string_view top_k_key(const JsonObject& json) {
  constexpr std::string_view kOld = "experts_per_token", kNew = "num_experts_per_tok";
  if (!json.has(kNew)) return json.has(kOld) ? kOld : kNew;
  if (json.has(kOld) && json.integer(kOld, 1, kMaxExperts) != json.integer(kNew, 1, kMaxExperts))
    json.fail(kOld, "the same as " + std::string(kNew));
  return kNew;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      read_decoder(json, {.max_positions = 131072, .rms_eps = 1e-5, .window = true, .quantised = "mxfp4"});
  config.attention = read_attention(json, config);
  const bool short_name = json.has("num_experts") && !json.has("num_local_experts");
  config.moe = read_experts(json, config,
                            {.count_key = short_name ? "num_experts" : "num_local_experts",
                             .count = 128,
                             .top_k_key = top_k_key(json),
                             .top_k = 4,
                             .width_key = "intermediate_size",
                             .width = 2880});
  config.moe.router_bias = true;
  // Published: the softmax of the chosen logits alone. These are the greatest, so softmax over all, divided
  // by the sum of the chosen, is the same.
  config.moe.renormalise = true;
  config.activation = {.kind = Activation::kClampedSwiGluPairs,
                       .limit = static_cast<float>(json.real_or("swiglu_limit", 7.0, 1e-6, 1e6)),
                       .alpha = static_cast<float>(json.real_or("swiglu_alpha", 1.702, 0.0, 1e6))};
  config.moe.mxfp4 = json.has("quantization_config");
  if (config.moe.mxfp4 && config.hidden % kBlock != 0)
    json.fail("hidden_size", "a multiple of 32, because experts are stored in MXFP4");
  if (config.moe.mxfp4 && config.moe.width % kBlock != 0)
    json.fail("intermediate_size", "a multiple of 32, because experts are stored in MXFP4");
  return config;
}

void list_expert_biases(const ModelConfig& config, TensorList& list) {
  const std::uint64_t experts = config.moe.experts, width = config.moe.width;
  if (config.activation.gate()) {
    list.add(Role::kExpertGateBias, "mlp.experts.gate_proj_bias", {experts, width});
    list.add(Role::kExpertUpBias, "mlp.experts.up_proj_bias", {experts, width});
  } else {
    list.add(Role::kExpertUpBias, "mlp.experts.gate_up_proj_bias", {experts, 2 * width});
  }
  list.add(Role::kExpertDownBias, "mlp.experts.down_proj_bias", {experts, config.hidden});
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
    list.experts("mlp.experts", config.activation.gate() ? MlpNames() : kPairs);
    list_expert_biases(config, list);
  }
  list.final_norm();
  list.head();
  return list.take();
}

}  // namespace

extern const Architecture kGptOss = {"gpt_oss", "gpt-oss-20b, 120b (arXiv 2508.10925)", parse, tensors,
                                     carries_common};

}  // namespace sluice::model
