#include "lab/machine/sliced_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "lab/machine/weight_bytes.h"
#include "model/architecture.h"

namespace sluice::lab {
namespace {

constexpr double kExpertGroup = 32;

// Shapes from the published config.json files (2024; deepseek-ai/DeepSeek-V2-Lite and
// Qwen/Qwen1.5-MoE-A2.7B), without fields that affect no size.
constexpr const char* kDeepSeekV2Lite = R"({
  "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "moe_intermediate_size": 1408, "moe_layer_freq": 1,
  "first_k_dense_replace": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
  "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
  "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "v_head_dim": 128, "rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 1.0,
  "scoring_func": "softmax", "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
  "hidden_act": "silu", "vocab_size": 102400})";
constexpr const char* kQwen15Moe = R"({
  "model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "hidden_act": "silu",
  "max_position_embeddings": 32768, "num_attention_heads": 16, "num_hidden_layers": 24,
  "num_key_value_heads": 16, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
  "use_sliding_window": false, "vocab_size": 151936, "decoder_sparse_step": 1, "moe_intermediate_size": 1408,
  "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4, "num_experts": 60,
  "norm_topk_prob": false})";

SlicedModel published(const char* name, const char* config) {
  return SlicedModel(name, model::parse_config(parse_json(config, name), name));
}

}  // namespace

experts::ExpertBytes slice_bytes(double weights, codec::SliceBits bits) {
  const double metadata = 3 * std::ceil(weights / kExpertGroup);
  return {.msb = static_cast<Bytes>(std::ceil(bytes_at(weights, bits.low)) + metadata),
          .lsb = static_cast<Bytes>(std::ceil(bytes_at(weights, bits.shift())))};
}

SlicedModel::SlicedModel(std::string name, const model::ModelConfig& config)
    : name_(std::move(name)),
      layers_(config.sparse_layers()),
      experts_(config.moe.experts),
      top_k_(config.moe.top_k) {
  if (layers_ == 0 || config.has_encoder())
    throw Error(ErrorKind::kUnsupported, "only decoders with experts are modelled")
        .in(name_)
        .expected("layers with routed experts, and no encoder")
        .found(config.has_encoder() ? "an encoder-decoder" : "no layer with experts")
        .fix("name the model that the trace was recorded from, or leave " + Setting::kShape + " out");
  model_layers_.resize(config.layers);
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    model_layers_[layer].window = config.window(layer);
  double embedding = 0;
  for (const model::TensorSpec& tensor : model::tensor_table(config)) {
    double weights = 1;
    for (const std::uint64_t size : tensor.shape) weights *= static_cast<double>(size);
    if (tensor.expert >= 0) {
      expert_weights_ += weights;
    } else if (tensor.role == model::Role::kEmbedding) {
      embedding = weights;  // a token reads one row of it
    } else if (tensor.layer >= 0) {
      model_layers_[static_cast<std::size_t>(tensor.layer)].weights += weights;
    } else {
      head_ += weights;
    }
  }
  expert_weights_ /= double{1} * layers_ * experts_;
  if (config.tied_head) head_ += embedding;
  const model::AttentionConfig& attention = config.attention;
  if (attention.kind == model::AttentionKind::kMla) {
    // Queries and outputs are transformed into the cached space, so kv_b_proj counts once per token.
    kv_numbers_ = attention.kv_lora_rank + attention.rope_dim;
    attention_macs_ = double{1} * attention.heads * (2 * attention.kv_lora_rank + attention.rope_dim);
  } else {
    kv_numbers_ = 2.0 * attention.kv_heads * attention.head_dim;
    attention_macs_ = 2.0 * attention.heads * attention.head_dim;
  }
}

double SlicedModel::rest_weights() const {
  double weights = head_;
  for (const Layer& layer : model_layers_) weights += layer.weights;
  return weights;
}

SlicedModel::Work SlicedModel::rest(const Machine& machine, std::span<const Stretch> sequences,
                                    const RestWidths& widths) const {
  Work work;
  const auto add = [&](const Traffic& traffic) {
    work.traffic += traffic;
    work.seconds += machine.compute_s(traffic.dram_read + traffic.dram_written, traffic.ops);
  };
  double tokens = 0;
  for (const Stretch& one : sequences) tokens += one.tokens;
  if (tokens == 0) return work;
  for (const Layer& layer : model_layers_) {
    Traffic traffic = {.dram_read = layer.weights * widths.weight,
                       .dram_written = tokens * kv_numbers_ * widths.kv,
                       .ops = 2 * layer.weights * tokens};
    for (const Stretch& one : sequences) {
      const double most = layer.window > 0 ? layer.window : 1e300;
      traffic.dram_read += kv_numbers_ * widths.kv * std::min(one.context + one.tokens, most);
      // Token i of n sees context + i positions, itself included.
      const double seen = one.tokens * std::min(one.context + (one.tokens + 1) / 2, most);
      traffic.ops += 2 * attention_macs_ * seen;
    }
    add(traffic);
  }
  const double heads = static_cast<double>(sequences.size());
  add({.dram_read = head_ * widths.weight, .ops = 2 * head_ * heads});
  return work;
}

std::span<const SlicedModel> published_models() {
  static const std::vector<SlicedModel> models = {published("deepseek-v2-lite", kDeepSeekV2Lite),
                                                  published("qwen1.5-moe-a2.7b", kQwen15Moe)};
  return models;
}

const SlicedModel& find_published_model(std::string_view name) {
  std::vector<std::string> known;
  for (const SlicedModel& model : published_models()) {
    if (model.name() == name) return model;
    known.push_back(model.name());
  }
  throw unknown_name(Setting::kShape, name, known);
}

}  // namespace sluice::lab
