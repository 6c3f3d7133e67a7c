// Switch Transformers (model_type switch_transformers): google/switch-base-8 to switch-large-128.
// A T5 encoder-decoder: relative position bias instead of RoPE, scores without a scale, RMSNorm, MLPs without
// a gate. Sparse layers choose one expert for a token, and an expert takes at most `expert_capacity`
// tokens of a sequence. Layer numbers count the encoder's layers first, then the decoder's.
#include <cmath>

#include "model/config_reader.h"
#include "model/tensor_list.h"

namespace sluice::model {
namespace {

constexpr MlpNames kMlp = {.gate = "", .up = "wi", .down = "wo"};
constexpr std::int64_t kMaxDistance = 1 << 20;

// Block b of a stack has experts iff step is 1 or b mod step is 1, where step = blocks / sparse blocks.
// Checkpoints also state the step; the published class computes it.
void read_sparse(const JsonObject& json, std::string_view count_key, std::string_view step_key,
                 std::uint32_t blocks, std::vector<bool>& sparse) {
  const auto count = static_cast<std::uint32_t>(json.integer_or(count_key, 3, 0, blocks));
  const std::uint32_t step = count == 0 ? blocks : blocks / count;
  if (json.has(step_key) && json.integer(step_key, 0, kMaxLayers) != step)
    json.fail(step_key,
              "the number of layers by " + std::string(count_key) + " (" + std::to_string(step) + ")");
  for (std::uint32_t block = 0; block < blocks; ++block) sparse.push_back(step == 1 || block % step == 1);
}

tokenizer::TokenId read_token(const JsonObject& json, std::string_view key, tokenizer::TokenId fallback) {
  return static_cast<tokenizer::TokenId>(json.integer_or(key, fallback, 0, INT32_MAX));
}

void refuse_what_is_not_computed(const JsonObject& json) {
  check_dtype(json);
  if (json.has("quantization_config"))
    unsupported(json, "quantization_config", "weights in BF16, F16 or F32");
  require_string(json, "dense_act_fn", "relu");
  require_string(json, "feed_forward_proj", "relu");
  require_string(json, "router_dtype", "float32");
  require_string(json, "router_type", "tokens_masked");
  require_false(json, "is_gated_act");
  require_false(json, "router_bias");
  if (!json.boolean_or("is_encoder_decoder", true)) unsupported(json, "is_encoder_decoder", "true");
  if (json.integer_or("num_selected_experts", 1, 1, kMaxExperts) != 1)
    unsupported(json, "num_selected_experts", "1");
}

AttentionConfig read_attention(const JsonObject& json) {
  AttentionConfig attention;
  attention.heads = attention.kv_heads = read_size(json, "num_heads", kMaxHeads);
  attention.head_dim = read_size_or(json, "d_kv", 64, kMaxHeadDim);
  attention.scaled = false;
  // Half of the buckets serve each direction, and half of these serve single distances.
  attention.relative.buckets =
      static_cast<std::uint32_t>(json.integer_or("relative_attention_num_buckets", 32, 4, kMaxDistance));
  attention.relative.max_distance =
      static_cast<std::uint32_t>(json.integer_or("relative_attention_max_distance", 128, 1, kMaxDistance));
  if (attention.relative.max_distance <= attention.relative.buckets / 2)
    json.fail("relative_attention_max_distance", "more than half of relative_attention_num_buckets");
  return attention;
}

ModelConfig parse(const JsonObject& json) {
  refuse_what_is_not_computed(json);
  ModelConfig config;
  config.model_type = json.string("model_type");
  config.vocab = read_size(json, "vocab_size", kMaxVocab);
  config.hidden = read_size(json, "d_model", kMaxHidden);
  config.encoder_layers = read_size(json, "num_layers", kMaxLayers / 2);
  const std::uint32_t decoder_layers =
      read_size_or(json, "num_decoder_layers",
                   json.value().contains("num_decoder_layers") ? config.encoder_layers : 12, kMaxLayers / 2);
  config.layers = config.encoder_layers + decoder_layers;
  read_sparse(json, "num_sparse_encoder_layers", "encoder_sparse_step", config.encoder_layers, config.sparse);
  read_sparse(json, "num_sparse_decoder_layers", "decoder_sparse_step", decoder_layers, config.sparse);
  if (config.sparse_layers() == 0) json.fail("num_sparse_encoder_layers", "at least one layer with experts");
  config.max_positions = static_cast<std::uint32_t>(kMaxPositions);  // a bias by distance has no limit
  config.rms_eps = static_cast<float>(json.real_or("layer_norm_epsilon", 1e-6, 0.0, 1.0));
  config.tied_head = json.boolean_or("tie_word_embeddings", true);
  if (config.tied_head)
    config.head_scale = static_cast<float>(std::pow(static_cast<double>(config.hidden), -0.5));
  config.activation.kind = Activation::kRelu;
  config.attention = read_attention(json);
  config.moe = read_experts(json, config,
                            {.count_key = "num_experts",
                             .count = 8,
                             .top_k_key = "num_selected_experts",
                             .top_k = 1,
                             .width_key = "d_ff",
                             .width = 2048});
  config.moe.capacity = static_cast<std::uint32_t>(json.integer_or("expert_capacity", 64, 1, kMaxPositions));
  config.dense_width = config.moe.width;
  config.eos = {};
  for (const std::int64_t id : json.integers_or("eos_token_id", {1}, 0, INT32_MAX))
    config.eos.push_back(static_cast<tokenizer::TokenId>(id));
  config.decoder_start = read_token(json, "decoder_start_token_id", read_token(json, "pad_token_id", 0));
  return config;
}

// Lists a T5 attention under `name`, and the norm before it.
void list_attention(TensorList& list, const ModelConfig& config, const std::string& sublayer,
                    const std::string& name, bool cross, bool first) {
  const std::uint64_t hidden = config.hidden;
  const std::uint64_t inner = std::uint64_t{config.attention.heads} * config.attention.head_dim;
  list.add(cross ? Role::kCrossNorm : Role::kInputNorm, sublayer + "layer_norm.weight", {hidden});
  const std::string prefix = sublayer + name;
  list.add(cross ? Role::kCrossQ : Role::kQ, prefix + ".q.weight", {inner, hidden});
  list.add(cross ? Role::kCrossK : Role::kK, prefix + ".k.weight", {inner, hidden});
  list.add(cross ? Role::kCrossV : Role::kV, prefix + ".v.weight", {inner, hidden});
  if (first) {
    list.add(Role::kRelativeBias, prefix + ".relative_attention_bias.weight",
             {config.attention.relative.buckets, config.attention.heads});
  }
  list.add(cross ? Role::kCrossO : Role::kO, prefix + ".o.weight", {hidden, inner});
}

void list_stack(TensorList& list, const ModelConfig& config, const std::string& stack, std::uint32_t first,
                std::uint32_t end) {
  const bool decoder = first != 0;
  for (std::uint32_t layer = first; layer < end; ++layer) {
    list.enter(stack + ".block." + std::to_string(layer - first) + ".", static_cast<std::int32_t>(layer));
    list_attention(list, config, "layer.0.", "SelfAttention", false, layer == first);
    if (decoder) list_attention(list, config, "layer.1.", "EncDecAttention", true, false);
    const std::string mlp = decoder ? "layer.2." : "layer.1.";
    list.add(Role::kPostAttentionNorm, mlp + "layer_norm.weight", {config.hidden});
    if (config.sparse[layer]) {
      list.router(mlp + "mlp.router.classifier");
      list.experts(mlp + "mlp.experts.expert_", kMlp);
    } else {
      list.dense_mlp(mlp + "mlp", kMlp);
    }
  }
  list.enter(stack + ".", -1);
  list.add(decoder ? Role::kFinalNorm : Role::kEncoderFinalNorm, "final_layer_norm.weight", {config.hidden});
}

std::vector<TensorSpec> tensors(const ModelConfig& config) {
  TensorList list(config);
  list.add(Role::kEmbedding, "shared.weight", {config.vocab, config.hidden});
  list_stack(list, config, "encoder", 0, config.encoder_layers);
  list_stack(list, config, "decoder", config.encoder_layers, config.layers);
  list.enter("", -1);
  list.head();
  return list.take();
}

// Copies of `shared` that exports also contain.
bool carries(const ModelConfig& config, std::string_view name) {
  return name == "encoder.embed_tokens.weight" || name == "decoder.embed_tokens.weight" ||
         (name == "lm_head.weight" && config.tied_head);
}

}  // namespace

extern const Architecture kSwitchTransformers = {
    "switch_transformers", "Switch Transformers (arXiv 2101.03961), T5 (arXiv 1910.10683); SPEC §9", parse,
    tensors, carries};

}  // namespace sluice::model
