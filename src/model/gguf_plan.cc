#include "model/gguf_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "model/gguf_names.h"

namespace sluice::model {
namespace {

constexpr std::string_view kGptOssType = "gpt_oss";

using Keys = std::vector<std::pair<std::string, store::GgufWritten>>;

// Keys that begin with the architecture's name.
class KeyList {
 public:
  explicit KeyList(std::string_view prefix) : prefix_(prefix) {}
  void add(std::string_view key, std::uint32_t number) { put(key, number); }
  void add(std::string_view key, float number) { put(key, number); }
  void add(std::string_view key, bool flag) { put(key, flag); }
  void add(std::string_view key, std::string text) { put(key, std::move(text)); }
  void add_general(std::string_view key, store::GgufWritten value) {
    keys_.emplace_back(std::string(key), std::move(value));
  }
  Keys take() { return std::move(keys_); }

 private:
  template <class Value>
  void put(std::string_view key, Value value) {
    keys_.emplace_back(std::string(prefix_) + "." + std::string(key), std::move(value));
  }
  std::string_view prefix_;
  Keys keys_;
};

void add_sizes(const ModelConfig& config, KeyList& keys) {
  keys.add("block_count", config.layers);
  keys.add("context_length", config.max_positions);
  keys.add("embedding_length", config.hidden);
  keys.add("feed_forward_length", config.dense_width != 0 ? config.dense_width : config.moe.width);
  keys.add("attention.layer_norm_rms_epsilon", config.rms_eps);
  keys.add("vocab_size", config.vocab);
}

void add_attention(const AttentionConfig& attention, KeyList& keys) {
  keys.add("attention.head_count", attention.heads);
  if (attention.kind == AttentionKind::kMla) {
    keys.add("attention.head_count_kv", std::uint32_t{1});
    keys.add("attention.key_length", attention.kv_lora_rank + attention.rope_dim);
    keys.add("attention.value_length", attention.kv_lora_rank);
    keys.add("attention.key_length_mla", attention.nope_dim + attention.rope_dim);
    keys.add("attention.value_length_mla", attention.value_dim);
    keys.add("attention.kv_lora_rank", attention.kv_lora_rank);
    keys.add("attention.q_lora_rank", attention.q_lora_rank);
  } else {
    keys.add("attention.head_count_kv", attention.kv_heads);
    keys.add("attention.key_length", attention.head_dim);
    keys.add("attention.value_length", attention.head_dim);
  }
  keys.add("rope.dimension_count", attention.rope.dims);
  if (attention.clip_qkv) keys.add("attention.clamp_kqv", *attention.clip_qkv);
  if (attention.sliding_window != 0) keys.add("attention.sliding_window", attention.sliding_window);
  if (!attention.layer_windows.empty())
    keys.add("attention.sliding_window", std::ranges::max(attention.layer_windows));
}

void add_rope(const RopeConfig& rope, KeyList& keys) {
  keys.add("rope.freq_base", static_cast<float>(rope.theta));
  if (rope.scaling == RopeScaling::kNone) return;
  const bool yarn = rope.scaling == RopeScaling::kYarn;
  keys.add("rope.scaling.type", std::string(yarn ? "yarn" : "linear"));
  keys.add("rope.scaling.factor", static_cast<float>(rope.factor));
  if (!yarn) return;
  keys.add("rope.scaling.original_context_length", rope.original_max_positions);
  keys.add("rope.scaling.yarn_beta_fast", static_cast<float>(rope.beta_fast));
  keys.add("rope.scaling.yarn_beta_slow", static_cast<float>(rope.beta_slow));
  if (rope.mscale_all_dim != 0)
    keys.add("rope.scaling.yarn_log_multiplier", static_cast<float>(0.1 * rope.mscale_all_dim));
}

void add_experts(const ModelConfig& config, KeyList& keys) {
  const MoeConfig& moe = config.moe;
  keys.add("expert_count", moe.experts);
  keys.add("expert_used_count", moe.top_k);
  keys.add("expert_feed_forward_length", moe.width);
  keys.add("expert_weights_norm", moe.renormalise);
  keys.add("expert_weights_scale", moe.routed_scale);
  keys.add("leading_dense_block_count",
           static_cast<std::uint32_t>(std::ranges::find(config.sparse, true) - config.sparse.begin()));
  if (moe.shared_gate)
    keys.add("expert_shared_feed_forward_length", moe.shared_width);
  else if (moe.shared_width != 0)
    keys.add("expert_shared_count", moe.shared_width / moe.width);
  if (moe.groups <= 1) return;
  keys.add("expert_group_count", moe.groups);
  keys.add("expert_group_used_count", moe.top_groups);
}

bool is_expert(const TensorSpec& spec) { return spec.expert >= 0; }

// A matrix of one row is a vector.
std::vector<std::uint64_t> stored_shape(const TensorSpec& spec) {
  if (spec.shape.size() == 2 && spec.shape[0] == 1) return {spec.shape[1]};
  return spec.shape;
}

}  // namespace

const GgufArchitecture* gguf_architecture_of(const ModelConfig& config) {
  const auto all = gguf_architectures();
  const auto found = std::ranges::find(all, config.model_type, &GgufArchitecture::model_type);
  return found == all.end() ? nullptr : &*found;
}

Keys gguf_keys(const GgufArchitecture& architecture, const ModelConfig& config) {
  KeyList keys(architecture.name);
  keys.add_general("general.architecture", std::string(architecture.name));
  keys.add_general("general.type", std::string("model"));
  keys.add_general("general.quantization_version", std::uint32_t{2});
  add_sizes(config, keys);
  add_attention(config.attention, keys);
  add_rope(config.attention.rope, keys);
  add_experts(config, keys);
  keys.add_general("tokenizer.ggml.model", std::string("no_vocab"));
  return keys.take();
}

std::optional<Unsayable> what_no_file_says(const ModelConfig& config) {
  if (config.model_type != kGptOssType) return std::nullopt;
  const GptOssConstants constants;
  const auto limit = static_cast<float>(constants.limit), alpha = static_cast<float>(constants.alpha);
  if (config.activation.limit != limit)
    return Unsayable{"swiglu_limit", fmt::format("{}", limit), fmt::format("{}", config.activation.limit)};
  if (config.activation.alpha != alpha)
    return Unsayable{"swiglu_alpha", fmt::format("{}", alpha), fmt::format("{}", config.activation.alpha)};
  const RopeConfig& rope = config.attention.rope;
  if (rope.scaling == RopeScaling::kYarn && rope.truncate)
    return Unsayable{"rope_scaling.truncate", "false", "true"};
  const std::uint32_t width = config.window(0);
  for (std::uint32_t layer = 0; layer < config.layers; ++layer)
    if (width == 0 || config.window(layer) != (layer % 2 == 0 ? width : 0))
      return Unsayable{"layer_types", "a window in every other layer, the first included",
                       fmt::format("another order, at layer {}", layer)};
  return std::nullopt;
}

std::vector<TensorSpec> gguf_table(const ModelConfig& config) {
  const AttentionConfig& a = config.attention;
  const std::uint64_t heads = a.heads, rank = a.kv_lora_rank;
  std::vector<TensorSpec> table;
  for (TensorSpec& spec : tensor_table(config)) {
    if (spec.role != Role::kKvUp) {
      table.push_back(std::move(spec));
      continue;
    }
    table.push_back({spec.name + ".keys", {heads, rank, a.nope_dim}, Role::kKeyUp, spec.layer, -1});
    table.push_back({spec.name + ".values", {heads, a.value_dim, rank}, Role::kValueUp, spec.layer, -1});
  }
  return table;
}

std::vector<GgufTensorPlan> gguf_tensors(const GgufArchitecture& architecture, const ModelConfig& config,
                                         const std::vector<TensorSpec>& table) {
  std::vector<GgufTensorPlan> tensors;
  const std::size_t matrices = config.expert_matrices();
  for (std::size_t i = 0; i < table.size();) {
    const TensorSpec& spec = table[i];
    if (!is_expert(spec)) {
      tensors.push_back({gguf_name(architecture, spec.role, spec.layer), stored_shape(spec), {&spec}});
      ++i;
      continue;
    }
    for (std::size_t m = 0; m < matrices; ++m) {
      const TensorSpec& first = table[i + m];
      GgufTensorPlan stack{gguf_name(architecture, first.role, first.layer),
                           {config.moe.experts, first.shape[0], first.shape[1]},
                           {}};
      for (std::uint32_t expert = 0; expert < config.moe.experts; ++expert)
        stack.specs.push_back(&table[i + m + expert * matrices]);
      tensors.push_back(std::move(stack));
    }
    i += matrices * config.moe.experts;
  }
  return tensors;
}

}  // namespace sluice::model
