#include "model/config_reader.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::model {
namespace {

// Bytes of the largest model within the limits, at four bytes per element: experts, attention (four nearly
// square projections), dense and shared MLPs, embedding and head.
constexpr double kLargestModelBytes =
    4.0 * (3.0 * kMaxExpertsTotal * kMaxHidden * kMaxWidth +
           8.0 * kMaxLayers * kMaxHeads * kMaxHeadDim * kMaxHidden +
           6.0 * kMaxLayers * kMaxHidden * kMaxWidth + 2.0 * kMaxVocab * kMaxHidden);
static_assert(kLargestModelBytes < 9.2e18, "sizes must fit in 63 bits");

std::string text(double number) { return Json(number).dump(); }

std::vector<tokenizer::TokenId> read_token_ids(const JsonObject& json, std::string_view key,
                                               const std::vector<tokenizer::TokenId>& fallback) {
  const std::vector<std::int64_t> ids =
      json.integers_or(key, std::vector<std::int64_t>(fallback.begin(), fallback.end()), 0, INT32_MAX);
  return std::vector<tokenizer::TokenId>(ids.begin(), ids.end());
}

// The object with the scaling parameters, in whichever spelling the file uses; empty if the file has none.
std::optional<JsonObject> rope_object(const JsonObject& json) {
  const bool scaling = json.has("rope_scaling"), parameters = json.has("rope_parameters");
  if (scaling && parameters && *json.find("rope_scaling") != *json.find("rope_parameters")) {
    json.fail("rope_scaling", "the same as rope_parameters, or only one of the two");
  }
  if (scaling) return json.object("rope_scaling");
  if (parameters) return json.object("rope_parameters");
  return std::nullopt;
}

double read_theta(const JsonObject& json, const std::optional<JsonObject>& rope, double fallback) {
  const double outer = json.real_or("rope_theta", fallback, 2.0, 1e18);
  if (!rope) return outer;
  const double inner = rope->real_or("rope_theta", outer, 2.0, 1e18);
  if (json.has("rope_theta") && inner != outer)
    rope->fail("rope_theta", "the same as rope_theta (" + text(outer) + ")");
  return inner;
}

RopeScaling read_scaling(const JsonObject& rope) {
  // "rope_type" is today's name of "type"; a file may have both.
  if (rope.has("rope_type") && rope.has("type") && rope.string("rope_type") != rope.string("type")) {
    rope.fail("type", "the same as rope_type (\"" + rope.string("rope_type") + "\")");
  }
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.string_or(key, "default");
  if (type == "default") return RopeScaling::kNone;
  if (type == "linear") return RopeScaling::kLinear;
  if (type == "yarn") return RopeScaling::kYarn;
  unsupported(rope, key, "default, linear or yarn");
}

void read_yarn(const JsonObject& json, const JsonObject& yarn, std::uint32_t max_positions,
               RopeConfig& rope) {
  // Hugging Face prefers the outer field to the one in the object, and uses the longest context if both are
  // missing.
  const std::uint32_t inner =
      read_size_or(yarn, "original_max_position_embeddings", max_positions, kMaxPositions);
  rope.original_max_positions = read_size_or(json, "original_max_position_embeddings", inner, kMaxPositions);
  rope.beta_fast = yarn.real_or("beta_fast", 32.0, 0.0, 1e6);
  rope.beta_slow = yarn.real_or("beta_slow", 1.0, 0.0, 1e6);
  if (rope.beta_fast == 0.0) rope.beta_fast = 32.0;  // as Hugging Face reads it: `x or 32`
  if (rope.beta_slow == 0.0) rope.beta_slow = 1.0;
  if (rope.beta_fast < rope.beta_slow)
    yarn.fail("beta_fast", "at least beta_slow (" + text(rope.beta_slow) + ")");
  rope.mscale = yarn.real_or("mscale", 0.0, 0.0, 1e3);
  rope.mscale_all_dim = yarn.real_or("mscale_all_dim", 0.0, 0.0, 1e3);
  if (yarn.has("attention_factor")) rope.attention_factor = yarn.real("attention_factor", 0.0, 1e3);
  rope.truncate = yarn.boolean_or("truncate", true);
}

void check_quantisation(const JsonObject& json, std::string_view method) {
  if (!json.has("quantization_config")) return;
  if (method.empty()) unsupported(json, "quantization_config", "weights in BF16, F16 or F32");
  const JsonObject quantisation = json.object("quantization_config");
  if (quantisation.string("quant_method") != method)
    unsupported(quantisation, "quant_method", "\"" + std::string(method) + "\"");
}

}  // namespace

std::uint32_t read_size(const JsonObject& json, std::string_view key, std::int64_t max) {
  return static_cast<std::uint32_t>(json.integer(key, 1, max));
}

std::uint32_t read_size_or(const JsonObject& json, std::string_view key, std::uint32_t fallback,
                           std::int64_t max) {
  return json.has(key) ? read_size(json, key, max) : fallback;
}

void unsupported(const JsonObject& json, std::string_view key, std::string_view expected) {
  try {
    json.fail(key, expected);
  } catch (const Error& error) {  // keeps the place and the found value as JsonObject writes them
    throw Error(ErrorKind::kUnsupported, "value is not supported")
        .in(error.where())
        .expected(error.expected_text())
        .found(error.found_text())
        .fix("use a model whose config says so");
  }
}

void require_string(const JsonObject& json, std::string_view key, std::string_view only) {
  if (json.string_or(key, only) != only) unsupported(json, key, "\"" + std::string(only) + "\"");
}

void require_false(const JsonObject& json, std::string_view key) {
  if (json.boolean_or(key, false)) unsupported(json, key, "false");
}

void check_dtype(const JsonObject& json) {
  constexpr std::string_view kNames[] = {"bfloat16", "float16", "half", "float32", "float"};
  for (const std::string_view key : {"torch_dtype", "dtype"})
    if (json.has(key) && std::ranges::find(kNames, json.string(key)) == std::end(kNames))
      unsupported(json, key, "bfloat16, float16 or float32");
}

void check_window(const JsonObject& json, bool default_window) {
  const bool use = json.boolean_or("use_sliding_window", false);
  json.integer_or("sliding_window", 0, use ? 1 : 0, kMaxPositions);
  const bool null = json.value().contains("sliding_window");
  if (use && !json.has("sliding_window") && (null || !default_window))
    json.fail("sliding_window", "a width in tokens, because use_sliding_window is true");
}

std::vector<bool> read_layer_types(const JsonObject& json, std::uint32_t layers) {
  std::vector<bool> sliding;
  const Json* const types = json.find("layer_types");
  if (types == nullptr) return sliding;
  if (!types->is_array() || types->size() != layers)
    json.fail("layer_types", "one name for each of num_hidden_layers (" + std::to_string(layers) + ")");
  for (const Json& type : *types) {
    if (type != "sliding_attention" && type != "full_attention")
      json.fail("layer_types", "full_attention or sliding_attention for each layer");
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

ModelConfig read_decoder(const JsonObject& json, const DecoderDefaults& defaults) {
  require_string(json, "hidden_act", "silu");
  check_dtype(json);
  check_window(json, defaults.window);
  check_quantisation(json, defaults.quantised);

  ModelConfig config;
  config.model_type = json.string("model_type");
  config.vocab = read_size(json, "vocab_size", kMaxVocab);
  config.hidden = read_size(json, "hidden_size", kMaxHidden);
  config.layers = read_size(json, "num_hidden_layers", kMaxLayers);
  config.max_positions = read_size_or(json, "max_position_embeddings", defaults.max_positions, kMaxPositions);
  config.rms_eps = static_cast<float>(json.real_or("rms_norm_eps", defaults.rms_eps, 0.0, 1.0));
  config.tied_head = json.boolean_or("tie_word_embeddings", false);
  config.bos = read_token_ids(json, "bos_token_id", defaults.bos);
  config.eos = read_token_ids(json, "eos_token_id", defaults.eos);
  config.sparse.assign(config.layers, true);
  return config;
}

AttentionConfig read_gqa(const JsonObject& json, const ModelConfig& config, const GqaDefaults& defaults) {
  AttentionConfig attention;
  attention.kind = AttentionKind::kGqa;
  attention.heads = read_size(json, "num_attention_heads", kMaxHeads);
  attention.kv_heads = read_size_or(json, "num_key_value_heads",
                                    defaults.kv_heads == 0 ? attention.heads : defaults.kv_heads, kMaxHeads);
  if (attention.heads % attention.kv_heads != 0) {
    json.fail("num_key_value_heads",
              "a divisor of num_attention_heads (" + std::to_string(attention.heads) + ")");
  }
  if (json.has("head_dim") || (defaults.head_dim != 0 && !json.value().contains("head_dim"))) {
    attention.head_dim = read_size_or(json, "head_dim", defaults.head_dim, kMaxHeadDim);
    if (attention.head_dim % 2 != 0) json.fail("head_dim", "an even number, because RoPE rotates pairs");
  } else {
    attention.head_dim = config.hidden / attention.heads;
    const std::string heads = std::to_string(attention.heads);
    if (config.hidden % attention.heads != 0)
      json.fail("hidden_size", "a multiple of num_attention_heads (" + heads + ")");
    if (attention.head_dim % 2 != 0) {
      json.fail("hidden_size",
                "an even multiple of num_attention_heads (" + heads + "), because RoPE rotates pairs");
    }
    if (attention.head_dim > kMaxHeadDim) {
      json.fail("hidden_size", "at most " + std::to_string(kMaxHeadDim) + " for each of " + heads + " heads");
    }
  }
  attention.rope = read_rope(json, attention.head_dim, defaults.rope_theta, config.max_positions);
  return attention;
}

RopeConfig read_rope(const JsonObject& json, std::uint32_t dims, double default_theta,
                     std::uint32_t max_positions) {
  SLUICE_CHECK(dims > 0 && dims % 2 == 0, std::to_string(dims));
  const std::optional<JsonObject> object = rope_object(json);
  RopeConfig rope;
  rope.dims = dims;
  rope.theta = read_theta(json, object, default_theta);
  if (json.real_or("partial_rotary_factor", 1.0, 0.0, 1.0) != 1.0)
    unsupported(json, "partial_rotary_factor", "1");
  if (!object) return rope;

  for (const auto& [key, value] : object->value().items()) {
    if (value.is_object()) unsupported(*object, key, "one set of parameters for all layers");
  }
  if (object->real_or("partial_rotary_factor", 1.0, 0.0, 1.0) != 1.0) {
    unsupported(*object, "partial_rotary_factor", "1");
  }
  rope.scaling = read_scaling(*object);
  if (rope.scaling == RopeScaling::kNone) return rope;
  rope.factor = object->real("factor", 1.0, 1e6);
  if (rope.scaling == RopeScaling::kYarn) read_yarn(json, *object, max_positions, rope);
  return rope;
}

MoeConfig read_experts(const JsonObject& json, const ModelConfig& config, const ExpertFields& fields) {
  const auto read = [&](std::string_view key, std::uint32_t fallback, std::int64_t max) {
    return fallback == 0 ? read_size(json, key, max) : read_size_or(json, key, fallback, max);
  };
  MoeConfig moe;
  moe.experts = read(fields.count_key, fields.count, kMaxExperts);
  moe.top_k = read(fields.top_k_key, fields.top_k, kMaxExperts);
  moe.width = read(fields.width_key, fields.width, kMaxWidth);
  if (moe.top_k > moe.experts) {
    json.fail(fields.top_k_key,
              "at most " + std::string(fields.count_key) + " (" + std::to_string(moe.experts) + ")");
  }
  const std::int64_t total = std::int64_t{moe.experts} * config.layers;
  if (total > kMaxExpertsTotal) {
    json.fail(fields.count_key, "at most " + std::to_string(kMaxExpertsTotal) + " experts in all " +
                                    std::to_string(config.layers) + " layers");
  }
  return moe;
}

std::uint32_t read_shared_width(const JsonObject& json, std::string_view key, std::uint32_t width,
                                std::int64_t absent) {
  const std::int64_t null = json.value().contains(key) ? 0 : absent;
  return static_cast<std::uint32_t>(json.integer_or(key, null, 0, kMaxWidth / width) * width);
}

std::vector<bool> read_sparse_step(const JsonObject& json, std::uint32_t layers) {
  const std::uint32_t step = read_size_or(json, "decoder_sparse_step", 1, kMaxLayers);
  std::vector<bool> sparse(layers);
  for (std::uint32_t layer = 0; layer < layers; ++layer) sparse[layer] = (layer + 1) % step == 0;
  for (const std::int64_t layer : json.integers_or("mlp_only_layers", {}, 0, std::int64_t{layers} - 1)) {
    sparse[static_cast<std::size_t>(layer)] = false;
  }
  if (std::ranges::find(sparse, true) == sparse.end()) {
    json.fail(step > layers ? "decoder_sparse_step" : "mlp_only_layers",
              "at least one layer left with experts");
  }
  return sparse;
}

std::vector<bool> read_first_dense(const JsonObject& json, std::uint32_t layers) {
  const auto first =
      static_cast<std::uint32_t>(json.integer_or("first_k_dense_replace", 0, 0, std::int64_t{layers} - 1));
  const std::uint32_t frequency = read_size_or(json, "moe_layer_freq", 1, kMaxLayers);
  std::vector<bool> sparse(layers);
  for (std::uint32_t layer = first; layer < layers; ++layer) sparse[layer] = layer % frequency == 0;
  if (std::ranges::find(sparse, true) == sparse.end()) {
    json.fail("moe_layer_freq", "at least one layer left with experts");
  }
  return sparse;
}

}  // namespace sluice::model
