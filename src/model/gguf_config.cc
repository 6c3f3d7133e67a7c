#include "model/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/shown_text.h"
#include "model/config_reader.h"

namespace sluice::model {
namespace {

using store::Checkpoint;
using store::GgufKeys;

constexpr std::string_view kEmbedding = "token_embd.weight", kHead = "output.weight";
constexpr std::string_view kGptOssOfOllama = "gptoss";
constexpr double kDefaultTheta = 10000.0;  // for files that name none

std::string joined(std::string_view prefix, std::string_view key) {
  return fmt::format("{}.{}", prefix, key);
}

// A number that is there already; 0 where it is not.
std::uint64_t number_in(const Json& config, std::string_view name) {
  return config.contains(name) ? config[name].get<std::uint64_t>() : 0;
}

[[noreturn]] void unsupported(const GgufKeys& keys, std::string_view key, std::string_view expected,
                              std::string_view found) {
  throw Error(ErrorKind::kUnsupported, "the key has a value that is not supported")
      .in(fmt::format("{}: {}", keys.file(), key))
      .expected(expected)
      .found(found)
      .fix("use a model without it");
}

// --- Fields that a key has as config.json has them ---

struct Field {
  std::string_view key, name;  // without the architecture's name; in config.json
};
constexpr Field kIntegers[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"expert_used_count", "num_experts_per_tok"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
};
constexpr Field kReals[] = {
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
};

void copy_fields(const GgufKeys& keys, std::string_view prefix, Json& config) {
  for (const Field& field : kIntegers)
    if (const auto number = keys.integer(joined(prefix, field.key))) config[field.name] = *number;
  for (const Field& field : kReals)
    if (const auto number = keys.real(joined(prefix, field.key))) config[field.name] = *number;
}

// --- Keys that must not say something that nobody computes ---

// A number that may be absent, or one of two.
struct OnlyNumber {
  std::string_view key;
  double neutral, other;
};
constexpr OnlyNumber kNeutral[] = {
    {"attention.scale", 0.0, 0.0},
    {"residual_scale", 0.0, 1.0},
    {"embedding_scale", 0.0, 1.0},
    {"logit_scale", 0.0, 1.0},
    {"final_logit_softcapping", 0.0, 0.0},
    {"attn_logit_softcapping", 0.0, 0.0},
    {"attention.shared_kv_layers", 0.0, 0.0},
    {"interleave_moe_layer_step", 0.0, 1.0},
};

void refuse_number(const GgufKeys& keys, const std::string& key, double neutral, double other) {
  const std::optional<double> number = keys.real(key);
  if (!number || *number == neutral || *number == other) return;
  unsupported(keys, key, fmt::format("{}, or no such key", other), fmt::format("{}", *number));
}

void refuse_what_nobody_computes(const GgufKeys& keys, std::string_view prefix) {
  for (const OnlyNumber& only : kNeutral)
    refuse_number(keys, joined(prefix, only.key), only.neutral, only.other);
}

// What most architectures do not have: a factor of the chosen weights, groups of experts, a window.
void refuse_extras(const GgufKeys& keys, std::string_view prefix) {
  refuse_number(keys, joined(prefix, "expert_weights_scale"), 0.0, 1.0);
  refuse_number(keys, joined(prefix, "expert_group_count"), 0.0, 1.0);
  refuse_number(keys, joined(prefix, "attention.sliding_window"), 0.0, 0.0);
}

// 1: softmax over all experts.
void require_softmax(const GgufKeys& keys, std::string_view prefix) {
  refuse_number(keys, joined(prefix, "expert_gating_func"), 0.0, 1.0);
}

// --- RoPE ---

void add_scaling(const GgufKeys& keys, std::string_view prefix, Json& config) {
  const std::string key = joined(prefix, "rope.scaling.type");
  const std::string type = keys.string(key).value_or("none");
  if (type == "none") return;
  if (type != "linear" && type != "yarn")
    unsupported(keys, key, "none, linear or yarn", '"' + shown_text(type) + '"');
  Json scaling = {{"rope_type", type},
                  {"factor", keys.real(joined(prefix, "rope.scaling.factor")).value_or(1.0)}};
  if (const auto length = keys.integer(joined(prefix, "rope.scaling.original_context_length")))
    scaling["original_max_position_embeddings"] = *length;
  for (const auto& [from, to] :
       {Field{"rope.scaling.yarn_beta_fast", "beta_fast"}, Field{"rope.scaling.yarn_beta_slow", "beta_slow"}})
    if (const auto number = keys.real(joined(prefix, from))) scaling[to] = *number;
  for (const std::string_view only : {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"})
    refuse_number(keys, joined(prefix, only), 1.0, 1.0);
  refuse_number(keys, joined(prefix, "rope.scaling.yarn_ext_factor"), -1.0, 1.0);
  config["rope_scaling"] = std::move(scaling);
}

// The size of a head, where the file says one: the same of keys, values and what is rotated.
void add_head_size(const GgufKeys& keys, std::string_view prefix, Json& config) {
  const auto key = keys.integer(joined(prefix, "attention.key_length"));
  const std::uint64_t heads = std::max<std::uint64_t>(1, number_in(config, "num_attention_heads"));
  const std::uint64_t size = key ? *key : number_in(config, "hidden_size") / heads;
  for (const std::string_view same : {"attention.value_length", "rope.dimension_count"})
    if (const auto other = keys.integer(joined(prefix, same)); other && *other != size)
      unsupported(keys, joined(prefix, same), fmt::format("{}, as keys have it", size),
                  fmt::format("{}", *other));
  if (key) config["head_dim"] = *key;
}

// --- What tensors tell ---

std::uint64_t rows_of(const Checkpoint& checkpoint, std::string_view name) {
  const store::TensorInfo* const tensor = checkpoint.find(name);
  return tensor == nullptr || tensor->shape.size() < 2 ? 0 : tensor->shape[tensor->shape.size() - 2];
}

// Layers without a router.
Json dense_layers(const Checkpoint& checkpoint, std::uint64_t layers) {
  Json dense = Json::array();
  for (std::uint64_t layer = 0; layer < layers; ++layer)
    if (checkpoint.find(fmt::format("blk.{}.ffn_gate_inp.weight", layer)) == nullptr) dense.push_back(layer);
  return dense;
}

// The width of an expert: old files of Mixtral call it that of a dense layer.
std::uint64_t expert_width(const GgufKeys& keys, std::string_view prefix) {
  if (const auto width = keys.integer(joined(prefix, "expert_feed_forward_length"))) return *width;
  return keys.required_integer(joined(prefix, "feed_forward_length"));
}

// --- Architectures ---

void add_qwen(const GgufKeys& keys, std::string_view prefix, const Checkpoint& checkpoint, Json& config) {
  refuse_extras(keys, prefix);
  require_softmax(keys, prefix);
  add_head_size(keys, prefix, config);
  config["num_experts"] = keys.required_integer(joined(prefix, "expert_count"));
  config["moe_intermediate_size"] = expert_width(keys, prefix);
  config["mlp_only_layers"] = dense_layers(checkpoint, number_in(config, "num_hidden_layers"));
}

void add_qwen3(const GgufKeys& keys, std::string_view prefix, const Checkpoint& checkpoint, Json& config) {
  add_qwen(keys, prefix, checkpoint, config);
  config["norm_topk_prob"] = keys.boolean(joined(prefix, "expert_weights_norm")).value_or(true);
  config["attention_bias"] = checkpoint.find("blk.0.attn_q.bias") != nullptr;
}

// Files of this architecture are computed without the sum of weights being 1, whatever they say.
void add_qwen2(const GgufKeys& keys, std::string_view prefix, const Checkpoint& checkpoint, Json& config) {
  add_qwen(keys, prefix, checkpoint, config);
  config["norm_topk_prob"] = false;
  for (std::uint64_t layer = 0; layer < number_in(config, "num_hidden_layers"); ++layer)
    if (const std::uint64_t width = rows_of(checkpoint, fmt::format("blk.{}.ffn_up_shexp.weight", layer))) {
      config["shared_expert_intermediate_size"] = width;
      return;
    }
}

void add_olmoe(const GgufKeys& keys, std::string_view prefix, const Checkpoint&, Json& config) {
  refuse_extras(keys, prefix);
  require_softmax(keys, prefix);
  add_head_size(keys, prefix, config);
  config.erase("head_dim");  // that of hidden / heads, which has been compared
  config["num_experts"] = keys.required_integer(joined(prefix, "expert_count"));
  config["intermediate_size"] = expert_width(keys, prefix);
  config["norm_topk_prob"] = keys.boolean(joined(prefix, "expert_weights_norm")).value_or(false);
  if (const auto clip = keys.real(joined(prefix, "attention.clamp_kqv"))) config["clip_qkv"] = *clip;
}

void add_mixtral(const GgufKeys& keys, std::string_view prefix, const Checkpoint&, Json& config) {
  refuse_number(keys, joined(prefix, "expert_weights_scale"), 0.0, 1.0);
  refuse_number(keys, joined(prefix, "expert_group_count"), 0.0, 1.0);
  require_softmax(keys, prefix);
  add_head_size(keys, prefix, config);
  if (const auto window = keys.integer(joined(prefix, "attention.sliding_window")); window && *window > 0)
    config["sliding_window"] = *window;
  config["num_local_experts"] = keys.required_integer(joined(prefix, "expert_count"));
  config["intermediate_size"] = expert_width(keys, prefix);
}

void add_deepseek(const GgufKeys& keys, std::string_view prefix, const Checkpoint&, Json& config) {
  refuse_extras(keys, prefix);
  require_softmax(keys, prefix);
  add_head_size(keys, prefix, config);
  config["n_routed_experts"] = keys.required_integer(joined(prefix, "expert_count"));
  config["n_shared_experts"] = keys.integer(joined(prefix, "expert_shared_count")).value_or(0);
  config["moe_intermediate_size"] = expert_width(keys, prefix);
  config["norm_topk_prob"] = keys.boolean(joined(prefix, "expert_weights_norm")).value_or(false);
}

// Multi-head latent attention. Files with the up projection in halves have its sizes of heads under names of
// their own.
void add_latent_sizes(const GgufKeys& keys, std::string_view prefix, const Checkpoint& checkpoint,
                      Json& config) {
  const bool halves = keys.has(joined(prefix, "attention.key_length_mla"));
  const std::string key = joined(prefix, halves ? "attention.key_length_mla" : "attention.key_length"),
                    value = joined(prefix, halves ? "attention.value_length_mla" : "attention.value_length"),
                    rotated = joined(prefix, "rope.dimension_count");
  const std::uint64_t whole = keys.required_integer(key), rope = keys.required_integer(rotated);
  if (rope >= whole)
    throw keys.fail(rotated, "more of a head is rotated than it has", fmt::format("less than {}", whole),
                    fmt::format("{}", rope));
  config["qk_nope_head_dim"] = whole - rope;
  config["qk_rope_head_dim"] = rope;
  config["v_head_dim"] = keys.required_integer(value);
  config["kv_lora_rank"] = keys.required_integer(joined(prefix, "attention.kv_lora_rank"));
  config["num_key_value_heads"] = number_in(config, "num_attention_heads");
  // The key may be written though queries are projected in one step.
  config["q_lora_rank"] = checkpoint.find("blk.0.attn_q_a.weight") == nullptr
                              ? Json()
                              : Json(keys.required_integer(joined(prefix, "attention.q_lora_rank")));
}

void add_deepseek2(const GgufKeys& keys, std::string_view prefix, const Checkpoint& checkpoint,
                   Json& config) {
  require_softmax(keys, prefix);
  refuse_number(keys, joined(prefix, "attention.sliding_window"), 0.0, 0.0);
  add_latent_sizes(keys, prefix, checkpoint, config);
  config["n_routed_experts"] = keys.required_integer(joined(prefix, "expert_count"));
  config["n_shared_experts"] = keys.integer(joined(prefix, "expert_shared_count")).value_or(0);
  config["moe_intermediate_size"] = expert_width(keys, prefix);
  config["norm_topk_prob"] = keys.boolean(joined(prefix, "expert_weights_norm")).value_or(false);
  const double scale = keys.real(joined(prefix, "expert_weights_scale")).value_or(0.0);
  config["routed_scaling_factor"] = scale == 0.0 ? 1.0 : scale;
  if (const auto groups = keys.integer(joined(prefix, "expert_group_count")); groups && *groups > 1) {
    config["topk_method"] = "group_limited_greedy";
    config["n_group"] = *groups;
    config["topk_group"] = keys.required_integer(joined(prefix, "expert_group_used_count"));
  }
  // 0.1 times both factors of DeepSeek's form of YaRN.
  const auto multiplier = keys.real(joined(prefix, "rope.scaling.yarn_log_multiplier"));
  if (multiplier && config.contains("rope_scaling"))
    config["rope_scaling"]["mscale"] = config["rope_scaling"]["mscale_all_dim"] = *multiplier / 0.1;
}

// The keys say less than config.json does, and absent ones have another default than its fields.
void add_gpt_oss(const GgufKeys& keys, std::string_view prefix, const Checkpoint& checkpoint, Json& config) {
  refuse_number(keys, joined(prefix, "expert_weights_scale"), 0.0, 1.0);
  refuse_number(keys, joined(prefix, "expert_group_count"), 0.0, 1.0);
  refuse_number(keys, joined(prefix, "expert_gating_func"), 0.0, 3.0);  // softmax over the chosen experts
  refuse_number(keys, joined(prefix, "attention.sliding_window_pattern"), 2.0, 2.0);  // every other layer
  add_head_size(keys, prefix, config);
  for (const std::string_view absent : {"head_dim", "num_key_value_heads"})
    if (!config.contains(absent)) config[absent] = nullptr;
  if (!config.contains("rope_theta")) config["rope_theta"] = kDefaultTheta;
  const double theta = config["rope_theta"].get<double>();
  refuse_number(keys, joined(prefix, "rope.freq_base_swa"), theta, theta);  // one for all layers
  if (config.contains("rope_scaling"))
    config["rope_scaling"]["truncate"] = false;
  else
    config["rope_parameters"] = {{"rope_type", "default"}};
  config["attention_bias"] = checkpoint.find("blk.0.attn_q.bias") != nullptr;
  config["sliding_window"] = keys.required_integer(joined(prefix, "attention.sliding_window"));
  config["num_local_experts"] = keys.required_integer(joined(prefix, "expert_count"));
  config["num_experts_per_tok"] = keys.required_integer(joined(prefix, "expert_used_count"));
  config["intermediate_size"] = expert_width(keys, prefix);
  config["swiglu_limit"] = GptOssConstants().limit;
  config["swiglu_alpha"] = GptOssConstants().alpha;
}

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "qwen3moe", .model_type = "qwen3_moe", .add = add_qwen3},
    {.name = "qwen2moe", .model_type = "qwen2_moe", .add = add_qwen2},
    {.name = "olmoe", .model_type = "olmoe", .add = add_olmoe},
    {.name = "llama", .model_type = "mixtral", .add = add_mixtral, .interleaved = true},
    {.name = "deepseek", .model_type = "deepseek", .add = add_deepseek, .interleaved = true},
    {.name = "deepseek2", .model_type = "deepseek_v2", .add = add_deepseek2},
    {.name = "gpt-oss", .model_type = "gpt_oss", .add = add_gpt_oss, .expert_norm = "post_attention_norm"},
};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() { return kArchitectures; }

const GgufArchitecture& find_gguf_architecture(const GgufKeys& keys) {
  if (const auto type = keys.string("general.type"); type && *type != "model")
    unsupported(keys, "general.type", "model", '"' + shown_text(*type) + '"');
  const std::string name = keys.required_string("general.architecture");
  if (name == kGptOssOfOllama)
    throw Error(ErrorKind::kUnsupported, "the tensors of this file have names and rows of their own")
        .in(keys.file() + ": general.architecture")
        .expected("gpt-oss")
        .found('"' + name + '"')
        .fix("use a file of the same model whose architecture is gpt-oss, or its safetensors");
  const auto* const found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  if (found == std::end(kArchitectures)) {
    std::string known;
    for (const GgufArchitecture& one : kArchitectures)
      known.append(known.empty() ? "one of " : ", ").append(one.name);
    unsupported(keys, "general.architecture", known, '"' + shown_text(name) + '"');
  }
  if (keys.integer(joined(name, "expert_count")).value_or(0) == 0)
    unsupported(keys, joined(name, "expert_count"), "a mixture of experts", "a model without experts");
  return *found;
}

Json gguf_config(const GgufArchitecture& architecture, const GgufKeys& keys, const Checkpoint& checkpoint) {
  const std::string_view prefix = architecture.name;
  Json config = {{"model_type", std::string(architecture.model_type)}};
  copy_fields(keys, prefix, config);
  // Layers for the prediction of further tokens are counted with the others.
  const std::uint64_t blocks = keys.required_integer(joined(prefix, "block_count")),
                      further = keys.integer(joined(prefix, "nextn_predict_layers")).value_or(0);
  if (blocks > kMaxLayers)
    throw keys.fail(joined(prefix, "block_count"), "the file has too many layers",
                    fmt::format("at most {}", kMaxLayers), fmt::format("{}", blocks));
  if (further >= blocks)
    throw keys.fail(joined(prefix, "nextn_predict_layers"), "a model without layers",
                    fmt::format("less than {}", blocks), fmt::format("{}", further));
  config["num_hidden_layers"] = blocks - further;
  config["vocab_size"] = rows_of(checkpoint, kEmbedding);
  config["tie_word_embeddings"] = checkpoint.find(kHead) == nullptr;
  add_scaling(keys, prefix, config);
  refuse_what_nobody_computes(keys, prefix);
  architecture.add(keys, prefix, checkpoint, config);
  return config;
}

ModelConfig with_gate_apart(ModelConfig config) {
  if (config.activation.kind == Activation::kClampedSwiGluPairs)
    config.activation.kind = Activation::kClampedSwiGlu;
  return config;
}

}  // namespace sluice::model
