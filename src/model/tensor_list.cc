#include "model/tensor_list.h"

#include <charconv>

#include "base/error.h"

namespace sluice::model {
namespace {

constexpr std::string_view kLayers = "model.layers.";

}  // namespace

TensorList::TensorList(const ModelConfig& config) : config_(config) {
  SLUICE_CHECK(config.sparse.size() == config.layers, std::to_string(config.sparse.size()));
  const std::size_t in_experts =
      std::size_t{config.expert_matrices()} * config.moe.experts * config.sparse_layers();
  specs_.reserve(in_experts + std::size_t{24} * config.layers + 3);
}

void TensorList::add(Role role, std::string_view name, std::vector<std::uint64_t> shape) {
  TensorSpec spec;
  spec.name.reserve(prefix_.size() + name.size());
  spec.name.append(prefix_).append(name);
  std::uint64_t bytes = 4;
  bool fits = true;
  for (const std::uint64_t dim : shape) fits &= dim > 0 && !__builtin_mul_overflow(bytes, dim, &bytes);
  fits = fits && !__builtin_add_overflow(bytes_, bytes, &bytes_) &&
         bytes_ <= static_cast<std::uint64_t>(INT64_MAX);
  if (!fits) {
    throw Error(ErrorKind::kInvalid, "shape is empty, or the model too large for 64-bit sizes")
        .in(spec.name)
        .fix("correct the sizes in config.json");
  }
  spec.shape = std::move(shape);
  spec.role = role;
  spec.layer = layer_;
  spec.expert = expert_;
  specs_.push_back(std::move(spec));
}

void TensorList::embedding() {
  add(Role::kEmbedding, "model.embed_tokens.weight", {config_.vocab, config_.hidden});
}

void TensorList::enter_layer(std::uint32_t layer) {
  layer_ = static_cast<std::int32_t>(layer);
  prefix_ = std::string(kLayers) + std::to_string(layer) + ".";
}

void TensorList::enter(std::string prefix, std::int32_t layer) {
  prefix_ = std::move(prefix);
  layer_ = layer;
}

void TensorList::input_norm() { add(Role::kInputNorm, "input_layernorm.weight", {config_.hidden}); }

void TensorList::gqa() {
  const AttentionConfig& a = config_.attention;
  const std::uint64_t hidden = config_.hidden;
  const std::uint64_t q = std::uint64_t{a.heads} * a.head_dim, kv = std::uint64_t{a.kv_heads} * a.head_dim;
  add(Role::kQ, "self_attn.q_proj.weight", {q, hidden});
  add(Role::kK, "self_attn.k_proj.weight", {kv, hidden});
  add(Role::kV, "self_attn.v_proj.weight", {kv, hidden});
  if (a.qkv_bias) {
    add(Role::kQBias, "self_attn.q_proj.bias", {q});
    add(Role::kKBias, "self_attn.k_proj.bias", {kv});
    add(Role::kVBias, "self_attn.v_proj.bias", {kv});
  }
  if (a.qk_norm != QkNorm::kNone) {
    const bool whole = a.qk_norm == QkNorm::kWhole;
    add(Role::kQNorm, "self_attn.q_norm.weight", {whole ? q : a.head_dim});
    add(Role::kKNorm, "self_attn.k_norm.weight", {whole ? kv : a.head_dim});
  }
  add(Role::kO, "self_attn.o_proj.weight", {hidden, q});
  if (a.o_bias) add(Role::kOBias, "self_attn.o_proj.bias", {hidden});
  if (a.sinks) add(Role::kSinks, "self_attn.sinks", {a.heads});
}

void TensorList::mla() {
  const AttentionConfig& a = config_.attention;
  const std::uint64_t hidden = config_.hidden, heads = a.heads;
  const std::uint64_t q = heads * (a.nope_dim + a.rope_dim);
  if (a.q_lora_rank == 0) {
    add(Role::kQ, "self_attn.q_proj.weight", {q, hidden});
  } else {
    add(Role::kQDown, "self_attn.q_a_proj.weight", {a.q_lora_rank, hidden});
    add(Role::kQDownNorm, "self_attn.q_a_layernorm.weight", {a.q_lora_rank});
    add(Role::kQUp, "self_attn.q_b_proj.weight", {q, a.q_lora_rank});
  }
  add(Role::kKvDown, "self_attn.kv_a_proj_with_mqa.weight",
      {std::uint64_t{a.kv_lora_rank} + a.rope_dim, hidden});
  add(Role::kKvDownNorm, "self_attn.kv_a_layernorm.weight", {a.kv_lora_rank});
  add(Role::kKvUp, "self_attn.kv_b_proj.weight", {heads * (a.nope_dim + a.value_dim), a.kv_lora_rank});
  add(Role::kO, "self_attn.o_proj.weight", {hidden, heads * a.value_dim});
}

void TensorList::post_attention_norm() {
  add(Role::kPostAttentionNorm, "post_attention_layernorm.weight", {config_.hidden});
}

void TensorList::mlp(std::string_view prefix, const MlpNames& names, std::uint64_t width, Role gate, Role up,
                     Role down) {
  const std::uint64_t hidden = config_.hidden;
  std::string name(prefix);
  name += '.';
  const std::size_t stem = name.size();
  const auto put = [&](Role role, std::string_view projection, std::uint64_t rows, std::uint64_t columns) {
    name.resize(stem);
    name.append(projection).append(".weight");
    add(role, name, {rows, columns});
  };
  if (!names.gate.empty()) put(gate, names.gate, width, hidden);
  put(up, names.up, width * config_.activation.up_rows(), hidden);
  put(down, names.down, hidden, width);
}

void TensorList::dense_mlp() { dense_mlp("mlp", {}); }

void TensorList::dense_mlp(std::string_view prefix, const MlpNames& names) {
  mlp(prefix, names, config_.dense_width, Role::kMlpGate, Role::kMlpUp, Role::kMlpDown);
}

void TensorList::router(std::string_view name) {
  add(Role::kRouter, std::string(name) + ".weight", {config_.moe.experts, config_.hidden});
  if (config_.moe.router_bias) add(Role::kRouterBias, std::string(name) + ".bias", {config_.moe.experts});
}

void TensorList::experts(std::string_view prefix, const MlpNames& names) {
  for (std::uint32_t expert = 0; expert < config_.moe.experts; ++expert) {
    expert_ = static_cast<std::int32_t>(expert);
    mlp(std::string(prefix) + (prefix.ends_with('_') ? "" : ".") + std::to_string(expert), names,
        config_.moe.width, Role::kExpertGate, Role::kExpertUp, Role::kExpertDown);
  }
  expert_ = -1;
}

void TensorList::shared_experts(std::string_view prefix) {
  if (config_.moe.shared_width == 0) return;
  mlp(prefix, {}, config_.moe.shared_width, Role::kSharedGate, Role::kSharedUp, Role::kSharedDown);
}

void TensorList::shared_expert_gate(std::string_view name) {
  add(Role::kSharedExpertGate, std::string(name) + ".weight", {1, config_.hidden});
}

void TensorList::final_norm() {
  prefix_.clear();
  layer_ = -1;
  add(Role::kFinalNorm, "model.norm.weight", {config_.hidden});
}

void TensorList::head() {
  if (!config_.tied_head) add(Role::kHead, "lm_head.weight", {config_.vocab, config_.hidden});
}

bool carries_common(const ModelConfig& config, std::string_view name) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  if (name == "lm_head.weight") return config.tied_head;
  if (!name.starts_with(kLayers)) return false;
  std::uint32_t layer = 0;
  const char* const first = name.data() + kLayers.size();
  const auto [end, error] = std::from_chars(first, name.data() + name.size(), layer);
  const bool number = error == std::errc() && end != name.data() + name.size() && *end == '.';
  return number && layer >= config.layers && layer < config.layers + config.mtp_layers;
}

}  // namespace sluice::model
