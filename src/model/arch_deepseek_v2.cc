// DeepSeek-V2, DeepSeek-V2-Lite (model_type deepseek_v2).
// Multi-head latent attention: keys and values are rebuilt from one low-rank vector per token; only the RoPE
// part of a key is stored beside it. Layers and experts as in deepseek; the router may choose groups of
// experts first.
#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

// An absent field means Hugging Face's default rank; null means that q is projected in one step.
std::uint32_t read_q_rank(const JsonObject& json) {
  if (!json.value().contains("q_lora_rank")) return 1536;
  return json.has("q_lora_rank") ? read_size(json, "q_lora_rank", kMaxRank) : 0;
}

AttentionConfig read_mla(const JsonObject& json, const ModelConfig& config) {
  require_false(json, "attention_bias");
  AttentionConfig attention;
  attention.kind = AttentionKind::kMla;
  attention.heads = read_size(json, "num_attention_heads", kMaxHeads);
  attention.kv_heads = read_size_or(json, "num_key_value_heads", attention.heads, kMaxHeads);
  if (attention.kv_heads != attention.heads) {
    json.fail("num_key_value_heads", "num_attention_heads (" + std::to_string(attention.heads) + ")");
  }
  attention.q_lora_rank = read_q_rank(json);
  attention.kv_lora_rank = read_size_or(json, "kv_lora_rank", 512, kMaxRank);
  attention.nope_dim = read_size_or(json, "qk_nope_head_dim", 128, kMaxHeadDim);
  attention.rope_dim = read_size_or(json, "qk_rope_head_dim", 64, kMaxHeadDim);
  attention.value_dim = read_size_or(json, "v_head_dim", 128, kMaxHeadDim);
  if (attention.rope_dim % 2 != 0)
    json.fail("qk_rope_head_dim", "an even number, because RoPE rotates pairs");
  attention.rope = read_rope(json, attention.rope_dim, 10000.0, config.max_positions);
  attention.rope.interleaved = true;
  return attention;
}

// group_limited_greedy: each group is scored by its best expert, and experts are chosen only from the best
// groups.
void read_groups(const JsonObject& json, MoeConfig& moe) {
  const std::string method = json.string_or("topk_method", "greedy");
  if (method == "greedy") return;
  if (method != "group_limited_greedy") unsupported(json, "topk_method", "greedy or group_limited_greedy");
  moe.groups = read_size(json, "n_group", kMaxExperts);
  moe.top_groups = read_size(json, "topk_group", kMaxExperts);
  if (moe.experts % moe.groups != 0) {
    json.fail("n_group", "a divisor of n_routed_experts (" + std::to_string(moe.experts) + ")");
  }
  if (moe.top_groups > moe.groups)
    json.fail("topk_group", "at most n_group (" + std::to_string(moe.groups) + ")");
  const std::uint32_t reachable = moe.experts / moe.groups * moe.top_groups;
  if (moe.top_k > reachable) {
    json.fail("num_experts_per_tok",
              "at most the experts of topk_group groups (" + std::to_string(reachable) + ")");
  }
}

ModelConfig parse(const JsonObject& json) {
  require_string(json, "scoring_func", "softmax");
  require_false(json, "mlp_bias");
  ModelConfig config = read_decoder(json, {.max_positions = 2048, .rms_eps = 1e-6, .bos = {1}, .eos = {2}});
  config.attention = read_mla(json, config);
  config.mtp_layers =
      static_cast<std::uint32_t>(json.integer_or("num_nextn_predict_layers", 0, 0, kMaxLayers));

  config.sparse = read_first_dense(json, config.layers);
  config.dense_width = read_size_or(json, "intermediate_size", 11008, kMaxWidth);
  config.moe = read_experts(json, config,
                            {.count_key = "n_routed_experts",
                             .count = 64,
                             .top_k_key = "num_experts_per_tok",
                             .width_key = "moe_intermediate_size",
                             .width = 1407});
  config.moe.shared_width = read_shared_width(json, "n_shared_experts", config.moe.width, 2);
  read_groups(json, config.moe);
  // The published code divides weights by their sum, or else multiplies them by the scale; a single weight is
  // never divided.
  config.moe.renormalise = json.boolean_or("norm_topk_prob", false) && config.moe.top_k > 1;
  config.moe.renormalise_epsilon = 1e-20f;
  config.moe.routed_scale = static_cast<float>(json.real_or("routed_scaling_factor", 1.0, 0.0, 1e6));
  return config;
}

std::vector<TensorSpec> tensors(const ModelConfig& config) {
  TensorList list(config);
  list.embedding();
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    list.enter_layer(layer);
    list.input_norm();
    list.mla();
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

extern const Architecture kDeepseekV2 = {"deepseek_v2", "DeepSeek-V2, V2-Lite (arXiv 2405.04434; SPEC §9)",
                                         parse, tensors, carries_common};

}  // namespace sluice::model
