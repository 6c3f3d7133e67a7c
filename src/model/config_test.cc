#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model::config_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json published(const std::string& name) {
  return read_json_file(SLUICE_SOURCE_DIR "/tests/data/configs/" + name + ".config.json");
}

ModelConfig parse(const Json& json) { return parse_config(json, "config.json"); }

Json with(Json json, const std::string& key, Json value) {
  json[key] = std::move(value);
  return json;
}

Json without(Json json, const std::string& key) {
  json.erase(key);
  return json;
}

// Expects one Error of this kind that names file and field.
void expect_error(const Json& json, ErrorKind kind, const std::string& field) {
  try {
    parse(json);
    ADD_FAILURE() << "no error for " << field << " in " << json.dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(error.where(), "config.json: " + field) << error.what();
    EXPECT_NE(error.expected_text(), "") << error.what();
  }
}

void expect_invalid(const std::string& model, const std::string& field, Json value) {
  SCOPED_TRACE(model + " " + field + " = " + value.dump());
  expect_error(with(published(model), field, std::move(value)), ErrorKind::kInvalid, field);
}

void expect_unsupported(const std::string& model, const std::string& field, Json value) {
  SCOPED_TRACE(model + " " + field + " = " + value.dump());
  expect_error(with(published(model), field, std::move(value)), ErrorKind::kUnsupported, field);
}

constexpr const char* kQwen = "qwen1.5-moe-a2.7b";
constexpr const char* kQwen57 = "qwen2-57b-a14b";
constexpr const char* kQwen3 = "qwen3-30b-a3b";
constexpr const char* kDeepseek = "deepseek-moe-16b";
constexpr const char* kDeepseekV2 = "deepseek-v2-lite";
constexpr const char* kMixtral = "mixtral-8x7b";
constexpr const char* kOlmoe = "olmoe-1b-7b";
constexpr const char* kXverse = "xverse-moe-a4.2b";
constexpr const char* kSwitch = "switch-large-128";
constexpr const char* kGptOss = "gpt-oss-20b";
constexpr const char* kAll[] = {kQwen,    kQwen57, kQwen3,  kDeepseek, kDeepseekV2,
                                kMixtral, kOlmoe,  kXverse, kGptOss};

TEST(Config, ReadsQwen2Moe) {
  const ModelConfig config = parse(published(kQwen));
  EXPECT_EQ(config.model_type, "qwen2_moe");
  EXPECT_EQ(config.vocab, 151936u);
  EXPECT_EQ(config.hidden, 2048u);
  EXPECT_EQ(config.layers, 24u);
  EXPECT_EQ(config.sparse_layers(), 24u);
  EXPECT_EQ(config.sparse_index(23), 23u);
  EXPECT_EQ(config.dense_width, 5632u);
  EXPECT_EQ(config.max_positions, 32768u);
  EXPECT_EQ(config.rms_eps, 1e-6f);
  EXPECT_FALSE(config.tied_head);
  EXPECT_EQ(config.attention.kind, AttentionKind::kGqa);
  EXPECT_EQ(config.attention.heads, 16u);
  EXPECT_EQ(config.attention.kv_heads, 16u);
  EXPECT_EQ(config.attention.head_dim, 128u);
  EXPECT_TRUE(config.attention.qkv_bias);
  EXPECT_FALSE(config.attention.o_bias);
  EXPECT_EQ(config.attention.qk_norm, QkNorm::kNone);
  EXPECT_EQ(config.window(0), 0u);
  EXPECT_EQ(config.attention.rope.theta, 1e6);
  EXPECT_EQ(config.attention.rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(config.attention.rope.dims, 128u);
  EXPECT_FALSE(config.attention.rope.interleaved);
  EXPECT_EQ(config.moe.experts, 60u);
  EXPECT_EQ(config.moe.top_k, 4u);
  EXPECT_EQ(config.moe.width, 1408u);
  EXPECT_EQ(config.moe.shared_width, 5632u);
  EXPECT_TRUE(config.moe.shared_gate);
  EXPECT_FALSE(config.moe.renormalise);
  EXPECT_THAT(config.bos, ElementsAre(151643));
  EXPECT_THAT(config.eos, ElementsAre(151645));
}

TEST(Config, ReadsQwen257B) {
  const ModelConfig config = parse(published(kQwen57));
  EXPECT_EQ(config.attention.heads, 28u);
  EXPECT_EQ(config.attention.kv_heads, 4u);
  EXPECT_EQ(config.moe.experts, 64u);
  EXPECT_EQ(config.moe.shared_width, 20480u);
}

TEST(Config, ReadsQwen3Moe) {
  const ModelConfig config = parse(published(kQwen3));
  EXPECT_EQ(config.attention.head_dim, 128u);
  EXPECT_EQ(config.attention.qk_norm, QkNorm::kPerHead);
  EXPECT_FALSE(config.attention.qkv_bias);
  EXPECT_FALSE(config.attention.o_bias);
  EXPECT_EQ(config.moe.experts, 128u);
  EXPECT_EQ(config.moe.width, 768u);
  EXPECT_EQ(config.moe.shared_width, 0u);
  EXPECT_TRUE(config.moe.renormalise);
  EXPECT_EQ(config.sparse_layers(), 48u);
}

TEST(Config, ReadsDeepseek) {
  const ModelConfig config = parse(published(kDeepseek));
  EXPECT_EQ(config.layers, 28u);
  EXPECT_EQ(config.sparse_layers(), 27u);
  EXPECT_FALSE(config.sparse[0]);
  EXPECT_EQ(config.sparse_index(1), 0u);
  EXPECT_EQ(config.sparse_index(27), 26u);
  EXPECT_EQ(config.dense_width, 10944u);
  EXPECT_EQ(config.moe.shared_width, 2u * 1408);
  EXPECT_FALSE(config.moe.shared_gate);
  EXPECT_FALSE(config.attention.rope.interleaved);
}

TEST(Config, ReadsDeepseekV2Lite) {
  const ModelConfig config = parse(published(kDeepseekV2));
  const AttentionConfig& attention = config.attention;
  EXPECT_EQ(attention.kind, AttentionKind::kMla);
  EXPECT_EQ(attention.q_lora_rank, 0u);
  EXPECT_EQ(attention.kv_lora_rank, 512u);
  EXPECT_EQ(attention.nope_dim, 128u);
  EXPECT_EQ(attention.rope_dim, 64u);
  EXPECT_EQ(attention.value_dim, 128u);
  EXPECT_TRUE(attention.rope.interleaved);
  EXPECT_EQ(attention.rope.dims, 64u);
  EXPECT_EQ(attention.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(attention.rope.factor, 40.0);
  EXPECT_EQ(attention.rope.beta_fast, 32.0);
  EXPECT_EQ(attention.rope.beta_slow, 1.0);
  EXPECT_EQ(attention.rope.mscale, 0.707);
  EXPECT_EQ(attention.rope.mscale_all_dim, 0.707);
  EXPECT_EQ(attention.rope.original_max_positions, 4096u);
  EXPECT_FALSE(attention.rope.attention_factor.has_value());
  EXPECT_EQ(config.moe.groups, 1u);
  EXPECT_EQ(config.moe.top_groups, 1u);
  EXPECT_EQ(config.moe.routed_scale, 1.0f);
  EXPECT_FALSE(config.moe.renormalise);
  EXPECT_EQ(config.sparse_layers(), 26u);
}

TEST(Config, ReadsMixtral) {
  const ModelConfig config = parse(published(kMixtral));
  EXPECT_EQ(config.attention.kv_heads, 8u);
  EXPECT_EQ(config.attention.sliding_window, 0u);
  EXPECT_EQ(config.moe.experts, 8u);
  EXPECT_EQ(config.moe.top_k, 2u);
  EXPECT_EQ(config.moe.width, 14336u);
  EXPECT_TRUE(config.moe.renormalise);
  EXPECT_EQ(config.moe.renormalise_epsilon, 0.0f);
  EXPECT_EQ(config.rms_eps, 1e-5f);
}

TEST(Config, ReadsOlmoe) {
  const ModelConfig config = parse(published(kOlmoe));
  EXPECT_EQ(config.attention.qk_norm, QkNorm::kWhole);
  EXPECT_FALSE(config.attention.clip_qkv.has_value());
  EXPECT_EQ(config.moe.top_k, 8u);
  EXPECT_THAT(config.bos, IsEmpty());
  EXPECT_THAT(config.eos, ElementsAre(50279));
}

TEST(Config, ReadsXverse) {
  const ModelConfig config = parse(published(kXverse));
  EXPECT_EQ(config.attention.kv_heads, 32u);
  EXPECT_EQ(config.attention.head_dim, 80u);
  EXPECT_EQ(config.attention.rope.theta, 5e5);
  EXPECT_EQ(config.moe.width, 1728u);
  EXPECT_EQ(config.moe.shared_width, 2u * 1728);
  EXPECT_EQ(config.moe.top_k, 6u);
  EXPECT_TRUE(config.moe.renormalise);
  EXPECT_EQ(config.moe.renormalise_epsilon, 1e-6f);
}

TEST(Config, BothSpellingsSayTheSame) {
  for (const char* const model : kAll) {
    SCOPED_TRACE(model);
    const Json old = published(model);
    Json rope = old.contains("rope_scaling") && old["rope_scaling"].is_object() ? old["rope_scaling"]
                                                                                : Json::object();
    rope["rope_theta"] = old["rope_theta"];
    if (!rope.contains("rope_type")) rope["rope_type"] = rope.value("type", "default");
    rope.erase("type");
    Json fresh = without(without(without(old, "rope_theta"), "rope_scaling"), "torch_dtype");
    fresh["rope_parameters"] = rope;
    if (old.contains("torch_dtype")) fresh["dtype"] = old["torch_dtype"];

    const ModelConfig a = parse(old), b = parse(fresh);
    EXPECT_EQ(a.attention.rope.theta, b.attention.rope.theta);
    EXPECT_EQ(a.attention.rope.scaling, b.attention.rope.scaling);
    EXPECT_EQ(a.attention.rope.factor, b.attention.rope.factor);
    EXPECT_EQ(a.attention.rope.mscale, b.attention.rope.mscale);
    EXPECT_EQ(a.attention.rope.truncate, b.attention.rope.truncate);
    EXPECT_EQ(a.attention.rope.original_max_positions, b.attention.rope.original_max_positions);
    EXPECT_EQ(a.attention.rope.dims, b.attention.rope.dims);
  }
}

TEST(Config, AbsentFieldsTakeHuggingFaceDefaults) {
  const Json qwen = {{"model_type", "qwen2_moe"},
                     {"vocab_size", 1000},
                     {"hidden_size", 2048},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 16}};
  const ModelConfig config = parse(qwen);
  EXPECT_EQ(config.attention.kv_heads, 16u);
  EXPECT_EQ(config.attention.rope.theta, 10000.0);
  EXPECT_EQ(config.moe.experts, 60u);
  EXPECT_EQ(config.moe.top_k, 4u);
  EXPECT_EQ(config.moe.width, 1408u);
  EXPECT_EQ(config.moe.shared_width, 5632u);
  EXPECT_EQ(config.dense_width, 5632u);
  EXPECT_TRUE(config.attention.qkv_bias);
  EXPECT_FALSE(config.tied_head);

  const ModelConfig mixtral = parse(with(with(qwen, "model_type", "mixtral"), "hidden_size", 4096));
  EXPECT_EQ(mixtral.attention.kv_heads, 8u);
  EXPECT_EQ(mixtral.attention.rope.theta, 1e6);
  EXPECT_EQ(mixtral.rms_eps, 1e-5f);
  EXPECT_EQ(mixtral.moe.experts, 8u);
  EXPECT_THAT(mixtral.eos, ElementsAre(2));

  EXPECT_EQ(parse(without(published(kDeepseekV2), "q_lora_rank")).attention.q_lora_rank, 1536u);
  EXPECT_EQ(parse(without(published(kDeepseekV2), "n_shared_experts")).moe.shared_width, 2u * 1408);
  EXPECT_EQ(parse(with(published(kDeepseekV2), "n_shared_experts", nullptr)).moe.shared_width, 0u);
  EXPECT_EQ(parse(without(published(kQwen3), "head_dim")).attention.head_dim, 64u);
}

TEST(Config, TokenIdsAreOneOrMany) {
  EXPECT_THAT(parse(with(published(kQwen), "eos_token_id", {1, 2, 3})).eos, ElementsAre(1, 2, 3));
  EXPECT_THAT(parse(with(published(kQwen), "eos_token_id", nullptr)).eos, IsEmpty());
  expect_invalid(kQwen, "eos_token_id", -1);
  expect_invalid(kQwen, "eos_token_id", "</s>");
  expect_invalid(kQwen, "eos_token_id", {1, 3000000000});
}

TEST(Config, SparseLayersFollowStepAndList) {
  Json json = with(with(published(kQwen), "decoder_sparse_step", 2), "mlp_only_layers", {3});
  json["num_hidden_layers"] = 6;
  const ModelConfig config = parse(json);
  EXPECT_THAT(config.sparse, ElementsAre(false, true, false, false, false, true));
  EXPECT_EQ(config.sparse_layers(), 2u);
  EXPECT_EQ(config.sparse_index(5), 1u);
}

TEST(Config, FrequencyCountsFromLayerZero) {
  Json json = with(with(published(kDeepseek), "moe_layer_freq", 2), "first_k_dense_replace", 1);
  json["num_hidden_layers"] = 5;
  EXPECT_THAT(parse(json).sparse, ElementsAre(false, false, true, false, true));
}

TEST(Config, WindowsOfQwen2MoeDifferByLayer) {
  Json json = with(with(published(kQwen), "use_sliding_window", true), "max_window_layers", 3);
  json["num_hidden_layers"] = 5;
  json["sliding_window"] = 100;
  // Every other layer below max_window_layers slides, as in Hugging Face.
  const ModelConfig even = parse(json);
  EXPECT_EQ(even.window(0), 100u);
  EXPECT_EQ(even.window(1), 0u);
  EXPECT_EQ(even.window(2), 100u);
  EXPECT_EQ(even.window(3), 0u);
  EXPECT_EQ(even.window(4), 0u);

  json["layer_types"] = {"full_attention", "sliding_attention", "full_attention", "full_attention",
                         "sliding_attention"};
  const ModelConfig named = parse(json);
  EXPECT_THAT(named.attention.layer_windows, ElementsAre(0, 100, 0, 0, 100));

  expect_error(with(json, "use_sliding_window", false), ErrorKind::kInvalid, "use_sliding_window");
  expect_error(with(json, "layer_types", {"full_attention"}), ErrorKind::kInvalid, "layer_types");
  expect_error(with(json, "layer_types", Json::array({1, 2, 3, 4, 5})), ErrorKind::kInvalid, "layer_types");
}

TEST(Config, WindowOfMixtralHoldsForAllLayers) {
  const ModelConfig config = parse(with(published(kMixtral), "sliding_window", 4096));
  EXPECT_EQ(config.window(0), 4096u);
  EXPECT_EQ(config.window(31), 4096u);
  expect_invalid(kMixtral, "sliding_window", 0);
}

// Windows are checked even where no layer slides, or no weight has that type: such a config is a mistake of
// its author.
TEST(Config, WindowsThatCannotBeAreRefusedEverywhere) {
  for (const char* const model : kAll) {
    SCOPED_TRACE(model);
    expect_invalid(model, "sliding_window", -3);
    expect_invalid(model, "sliding_window", "4096");
    expect_invalid(model, "use_sliding_window", "yes");
    if (std::string_view(model) == kGptOss) continue;  // layer_types says which layers see a window
    parse(with(published(model), "sliding_window", nullptr));
    parse(without(published(model), "sliding_window"));
    const Json used = with(published(model), "use_sliding_window", true);
    expect_error(with(used, "sliding_window", nullptr), ErrorKind::kInvalid, "sliding_window");
    expect_error(with(used, "sliding_window", 0), ErrorKind::kInvalid, "sliding_window");
    // Where the class has a default, an absent width means the default.
    if (used["model_type"] == "qwen2_moe" || used["model_type"] == "qwen3_moe")
      EXPECT_EQ(parse(without(used, "sliding_window")).window(0), 4096u);
    else
      expect_error(without(used, "sliding_window"), ErrorKind::kInvalid, "sliding_window");
  }
  EXPECT_EQ(parse(with(published(kQwen), "sliding_window", 0)).window(0), 0u);  // the width is not used
}

TEST(Config, TypesOfWeightsThatAreNotReadAreRefused) {
  for (const char* const model : kAll) {
    SCOPED_TRACE(model);
    for (const char* const key : {"torch_dtype", "dtype"}) {
      expect_unsupported(model, key, "float8");
      expect_unsupported(model, key, "");
      expect_invalid(model, key, 16);
      parse(with(published(model), key, "float16"));
      parse(with(published(model), key, nullptr));
    }
    parse(without(published(model), "torch_dtype"));
  }
}

TEST(Config, AttentionBiasIsTheFamilysOwn) {
  for (const char* const model : {kQwen3, kDeepseek, kOlmoe}) {
    const ModelConfig config = parse(with(published(model), "attention_bias", true));
    EXPECT_TRUE(config.attention.qkv_bias && config.attention.o_bias) << model;
  }
  EXPECT_FALSE(parse(with(published(kQwen), "qkv_bias", false)).attention.qkv_bias);
  expect_unsupported(kDeepseekV2, "attention_bias", true);
}

TEST(Config, GroupedRouting) {
  Json json = with(published(kDeepseekV2), "topk_method", "group_limited_greedy");
  json["n_group"] = 8;
  json["topk_group"] = 3;
  json["routed_scaling_factor"] = 16.0;
  const ModelConfig config = parse(json);
  EXPECT_EQ(config.moe.groups, 8u);
  EXPECT_EQ(config.moe.top_groups, 3u);
  EXPECT_EQ(config.moe.routed_scale, 16.0f);
  expect_error(with(json, "n_group", 7), ErrorKind::kInvalid, "n_group");
  expect_error(with(json, "n_group", nullptr), ErrorKind::kInvalid, "n_group");
  expect_error(with(json, "topk_group", 9), ErrorKind::kInvalid, "topk_group");
  expect_error(with(with(json, "n_group", 64), "topk_group", 5), ErrorKind::kInvalid, "num_experts_per_tok");
}

TEST(Config, YarnAsHuggingFaceSpellsIt) {
  const Json yarn = {{"rope_type", "yarn"},
                     {"factor", 4},
                     {"original_max_position_embeddings", 32768},
                     {"attention_factor", 1.5},
                     {"beta_fast", 0}};
  const RopeConfig rope = parse(with(published(kQwen3), "rope_scaling", yarn)).attention.rope;
  EXPECT_EQ(rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(rope.factor, 4.0);
  EXPECT_EQ(rope.attention_factor, 1.5);
  EXPECT_EQ(rope.beta_fast, 32.0);
  EXPECT_EQ(rope.original_max_positions, 32768u);
  EXPECT_EQ(parse(with(published(kQwen3), "rope_scaling", without(yarn, "original_max_position_embeddings")))
                .attention.rope.original_max_positions,
            40960u);

  const auto expect_field = [&](const Json& scaling, ErrorKind kind, const std::string& field) {
    expect_error(with(published(kQwen3), "rope_scaling", scaling), kind, "rope_scaling." + field);
  };
  expect_field(without(yarn, "factor"), ErrorKind::kInvalid, "factor");
  expect_field(with(yarn, "factor", 0.5), ErrorKind::kInvalid, "factor");
  expect_field(with(yarn, "factor", "4"), ErrorKind::kInvalid, "factor");
  expect_field(with(yarn, "beta_slow", 64), ErrorKind::kInvalid, "beta_fast");
  expect_field(with(yarn, "original_max_position_embeddings", 0), ErrorKind::kInvalid,
               "original_max_position_embeddings");
  expect_field(with(yarn, "truncate", 1), ErrorKind::kInvalid, "truncate");
  expect_field(with(yarn, "rope_type", "longrope"), ErrorKind::kUnsupported, "rope_type");
  expect_field(with(yarn, "type", "linear"), ErrorKind::kInvalid, "type");
  expect_field(with(yarn, "partial_rotary_factor", 0.5), ErrorKind::kUnsupported, "partial_rotary_factor");
  expect_field({{"type", "dynamic"}, {"factor", 2.0}}, ErrorKind::kUnsupported, "type");
  expect_field({{"full_attention", {{"rope_type", "default"}}}}, ErrorKind::kUnsupported, "full_attention");
}

TEST(Config, LinearRope) {
  const RopeConfig rope =
      parse(with(published(kDeepseek), "rope_scaling", {{"type", "linear"}, {"factor", 2.0}})).attention.rope;
  EXPECT_EQ(rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(rope.factor, 2.0);
}

TEST(Config, SpellingsThatContradictEachOtherAreRefused) {
  Json json = with(published(kQwen), "rope_parameters", {{"rope_theta", 5.0}, {"rope_type", "default"}});
  expect_error(json, ErrorKind::kInvalid, "rope_parameters.rope_theta");
  json["rope_parameters"]["rope_theta"] = 1e6;
  EXPECT_EQ(parse(json).attention.rope.theta, 1e6);
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  expect_error(json, ErrorKind::kInvalid, "rope_scaling");
}

TEST(Config, UnknownKindsAreUnsupportedByName) {
  expect_unsupported(kQwen, "hidden_act", "gelu");
  expect_unsupported(kDeepseek, "scoring_func", "sigmoid");
  expect_unsupported(kDeepseekV2, "scoring_func", "sigmoid");
  expect_unsupported(kDeepseekV2, "topk_method", "noaux_tc");
  expect_unsupported(kDeepseekV2, "mlp_bias", true);
  expect_unsupported(kQwen, "quantization_config", {{"quant_method", "gptq"}});
  expect_unsupported(kQwen, "partial_rotary_factor", 0.25);
  expect_unsupported(kOlmoe, "sliding_window", 128);
  expect_unsupported(kQwen, "model_type", "llama");
  expect_unsupported(kQwen, "model_type", std::string(5000, '\n'));
  try {
    parse(with(published(kDeepseekV2), "topk_method", "noaux_tc"));
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("noaux_tc"));
  }
}

TEST(Config, ReadsGptOss) {
  const ModelConfig config = parse(published(kGptOss));
  EXPECT_EQ(config.model_type, "gpt_oss");
  EXPECT_EQ(config.vocab, 201088u);
  EXPECT_EQ(config.hidden, 2880u);
  EXPECT_EQ(config.layers, 24u);
  EXPECT_EQ(config.sparse_layers(), 24u);
  EXPECT_FLOAT_EQ(config.rms_eps, 1e-5f);
  EXPECT_FALSE(config.tied_head);
  EXPECT_EQ(config.attention.heads, 64u);
  EXPECT_EQ(config.attention.kv_heads, 8u);
  EXPECT_EQ(config.attention.head_dim, 64u);
  EXPECT_TRUE(config.attention.qkv_bias);
  EXPECT_TRUE(config.attention.o_bias);
  EXPECT_TRUE(config.attention.sinks);
  EXPECT_EQ(config.window(0), 128u);
  EXPECT_EQ(config.window(1), 0u);
  EXPECT_EQ(config.window(22), 128u);
  const RopeConfig& rope = config.attention.rope;
  EXPECT_EQ(rope.theta, 150000.0);
  EXPECT_EQ(rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(rope.factor, 32.0);
  EXPECT_EQ(rope.original_max_positions, 4096u);
  EXPECT_FALSE(rope.truncate);
  EXPECT_FALSE(rope.attention_factor);
  EXPECT_EQ(config.moe.experts, 32u);
  EXPECT_EQ(config.moe.top_k, 4u);
  EXPECT_EQ(config.moe.width, 2880u);
  EXPECT_TRUE(config.moe.router_bias);
  EXPECT_TRUE(config.moe.renormalise);
  EXPECT_TRUE(config.moe.mxfp4);
  EXPECT_EQ(config.activation.kind, Activation::kClampedSwiGluPairs);
  EXPECT_EQ(config.activation.limit, 7.0f);
  EXPECT_EQ(config.activation.alpha, 1.702f);
  EXPECT_EQ(config.expert_matrices(), 2u);
  EXPECT_EQ(config.expert_elements(), 3u * 2880 * 2880);
  EXPECT_EQ(parse(published("gpt-oss-120b")).layers, 36u);
  EXPECT_EQ(parse(published("gpt-oss-120b")).moe.experts, 128u);
}

TEST(Config, GptOssDefaultsAndRefusals) {
  Json json = published(kGptOss);
  const ModelConfig whole = parse(json);
  for (const char* const key :
       {"rope_scaling", "rope_theta", "layer_types", "sliding_window", "swiglu_limit", "attention_bias",
        "head_dim", "num_key_value_heads", "num_experts_per_tok", "intermediate_size", "rms_norm_eps"})
    json.erase(key);
  const ModelConfig config = parse(json);
  EXPECT_EQ(config.attention.rope.theta, 150000.0);
  EXPECT_EQ(config.attention.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(config.attention.rope.factor, 32.0);
  EXPECT_EQ(config.attention.rope.original_max_positions, 4096u);
  EXPECT_FALSE(config.attention.rope.truncate);
  EXPECT_EQ(config.attention.layer_windows, whole.attention.layer_windows);
  EXPECT_EQ(config.attention.head_dim, 64u);
  EXPECT_EQ(config.attention.kv_heads, 8u);
  EXPECT_TRUE(config.attention.o_bias);
  EXPECT_EQ(config.moe.top_k, 4u);
  EXPECT_EQ(config.activation.limit, 7.0f);
  EXPECT_EQ(parse(with(json, "experts_per_token", 3)).moe.top_k, 3u);
  EXPECT_EQ(parse(without(json, "experts_per_token")).moe.top_k, 4u);
  EXPECT_EQ(parse(with(json, "swiglu_alpha", 1.5)).activation.alpha, 1.5f);
  // The new spelling.
  json["rope_parameters"] = {
      {"rope_theta", 500.0}, {"rope_type", "yarn"}, {"factor", 2.0}, {"truncate", false}};
  EXPECT_EQ(parse(json).attention.rope.theta, 500.0);
  EXPECT_FALSE(parse(json).attention.rope.truncate);
  json["rope_parameters"].erase("truncate");
  EXPECT_TRUE(parse(json).attention.rope.truncate);

  const ModelConfig words = parse(without(published(kGptOss), "quantization_config"));
  EXPECT_FALSE(words.moe.mxfp4);
  Json all_full = published(kGptOss);
  for (Json& type : all_full["layer_types"]) type = "full_attention";
  EXPECT_TRUE(parse(without(all_full, "sliding_window")).attention.layer_windows.empty());

  expect_invalid(kGptOss, "experts_per_token", 3);
  expect_invalid(kGptOss, "sliding_window", nullptr);
  expect_invalid(kGptOss, "layer_types", Json::array({"full_attention"}));
  expect_invalid(kGptOss, "swiglu_limit", 0);
  expect_invalid(kGptOss, "swiglu_limit", "7");
  expect_invalid(kGptOss, "hidden_size", 2881);
  expect_invalid(kGptOss, "intermediate_size", 2896);
  expect_unsupported(kGptOss, "hidden_act", "gelu");
  expect_error(with(published(kGptOss), "quantization_config", {{"quant_method", "gptq"}}),
               ErrorKind::kUnsupported, "quantization_config.quant_method");
  expect_error(with(published(kGptOss), "quantization_config", Json::object()), ErrorKind::kInvalid,
               "quantization_config.quant_method");
}

TEST(Config, ReadsSwitchTransformers) {
  const ModelConfig config = parse(published(kSwitch));
  EXPECT_EQ(config.model_type, "switch_transformers");
  EXPECT_EQ(config.vocab, 32128u);
  EXPECT_EQ(config.hidden, 1024u);
  EXPECT_EQ(config.encoder_layers, 24u);
  EXPECT_EQ(config.layers, 48u);
  EXPECT_EQ(config.sparse_layers(), 24u);
  EXPECT_FALSE(config.sparse[0]);
  EXPECT_TRUE(config.sparse[1]);
  EXPECT_FALSE(config.sparse[24]);
  EXPECT_TRUE(config.sparse[25]);
  EXPECT_EQ(config.dense_width, 4096u);
  EXPECT_FLOAT_EQ(config.rms_eps, 1e-6f);
  EXPECT_TRUE(config.tied_head);
  EXPECT_FLOAT_EQ(config.head_scale, 0.03125f);
  EXPECT_EQ(config.activation.kind, Activation::kRelu);
  EXPECT_EQ(config.expert_matrices(), 2u);
  EXPECT_EQ(config.attention.heads, 16u);
  EXPECT_EQ(config.attention.kv_heads, 16u);
  EXPECT_EQ(config.attention.head_dim, 64u);
  EXPECT_FALSE(config.attention.scaled);
  EXPECT_EQ(config.attention.rope.dims, 0u);
  EXPECT_EQ(config.attention.relative.buckets, 32u);
  EXPECT_EQ(config.attention.relative.max_distance, 128u);
  EXPECT_EQ(config.moe.experts, 128u);
  EXPECT_EQ(config.moe.top_k, 1u);
  EXPECT_EQ(config.moe.width, 4096u);
  EXPECT_EQ(config.moe.capacity, 64u);
  EXPECT_FALSE(config.moe.renormalise);
  EXPECT_THAT(config.eos, ElementsAre(1));
  EXPECT_EQ(config.decoder_start, 0);
  EXPECT_EQ(parse(published("switch-base-128")).sparse_layers(), 12u);
}

TEST(Config, SparseBlocksOfSwitchTransformers) {
  const auto sparse = [](int blocks, int sparse_blocks) {
    Json json = without(without(published(kSwitch), "encoder_sparse_step"), "decoder_sparse_step");
    json["num_layers"] = blocks;
    json["num_sparse_encoder_layers"] = sparse_blocks;
    const ModelConfig config = parse(json);
    return std::vector<bool>(config.sparse.begin(), config.sparse.begin() + blocks);
  };
  EXPECT_EQ(sparse(3, 3), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(sparse(4, 3), (std::vector<bool>{true, true, true, true}));  // step 4 / 3 = 1
  EXPECT_EQ(sparse(6, 2), (std::vector<bool>{false, true, false, false, true, false}));
  EXPECT_EQ(sparse(3, 1), (std::vector<bool>{false, true, false}));
}

TEST(Config, SwitchTransformersDefaultsAndRefusals) {
  Json json = published(kSwitch);
  for (const char* const key : {"d_kv", "expert_capacity", "num_experts", "eos_token_id", "pad_token_id",
                                "relative_attention_num_buckets", "tie_word_embeddings", "d_ff"}) {
    json.erase(key);
  }
  const ModelConfig config = parse(json);
  EXPECT_EQ(config.attention.head_dim, 64u);
  EXPECT_EQ(config.moe.experts, 8u);
  EXPECT_EQ(config.moe.width, 2048u);
  EXPECT_EQ(config.moe.capacity, 64u);
  EXPECT_THAT(config.eos, ElementsAre(1));
  EXPECT_EQ(parse(with(published(kSwitch), "decoder_start_token_id", 5)).decoder_start, 5);
  EXPECT_EQ(parse(with(published(kSwitch), "pad_token_id", 6)).decoder_start, 6);
  EXPECT_EQ(parse(with(published(kSwitch), "tie_word_embeddings", false)).head_scale, 1.0f);
  EXPECT_EQ(parse(with(published(kSwitch), "num_decoder_layers", nullptr)).layers, 48u);
  for (const char* const field : {"vocab_size", "d_model", "num_layers", "num_heads"}) {
    expect_error(without(published(kSwitch), field), ErrorKind::kInvalid, field);
    expect_invalid(kSwitch, field, 0);
    expect_invalid(kSwitch, field, 1000000000000);
  }
  expect_unsupported(kSwitch, "dense_act_fn", "gated-gelu");
  expect_unsupported(kSwitch, "feed_forward_proj", "gated-gelu");
  expect_unsupported(kSwitch, "is_gated_act", true);
  expect_unsupported(kSwitch, "router_bias", true);
  expect_unsupported(kSwitch, "router_dtype", "bfloat16");
  expect_unsupported(kSwitch, "num_selected_experts", 2);
  expect_unsupported(kSwitch, "is_encoder_decoder", false);
  expect_invalid(kSwitch, "expert_capacity", 0);
  expect_invalid(kSwitch, "encoder_sparse_step", 3);
  expect_invalid(kSwitch, "num_sparse_decoder_layers", 25);
  expect_invalid(kSwitch, "relative_attention_num_buckets", 3);
  expect_invalid(kSwitch, "relative_attention_max_distance", 16);
}

TEST(Config, MissingFieldsAreNamed) {
  for (const char* const field :
       {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"}) {
    for (const char* const model : kAll)
      expect_error(without(published(model), field), ErrorKind::kInvalid, field);
  }
  for (const char* const field : {"num_experts", "moe_top_k", "intermediate_size"}) {
    expect_error(without(published(kXverse), field), ErrorKind::kInvalid, field);
  }
  expect_error(without(published(kDeepseek), "n_routed_experts"), ErrorKind::kInvalid, "n_routed_experts");
  expect_error(without(published(kDeepseekV2), "num_experts_per_tok"), ErrorKind::kInvalid,
               "num_experts_per_tok");
}

TEST(Config, AbsurdSizesAreNamed) {
  for (const char* const model : kAll) {
    for (const char* const field :
         {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"}) {
      for (const Json& value : {Json(0), Json(-1), Json(1000000000000), Json(1e300), Json("7"), Json(2.5),
                                Json(nullptr), Json::array(), Json(true), Json(UINT64_MAX)}) {
        expect_invalid(model, field, value);
      }
    }
    expect_invalid(model, "rms_norm_eps", -1e-6);
    expect_invalid(model, "rope_theta", 0);
    expect_invalid(model, "max_position_embeddings", 0);
    expect_invalid(model, "tie_word_embeddings", "no");
    expect_invalid(model, "intermediate_size", 0);
  }
  expect_invalid(kQwen, "moe_intermediate_size", INT64_MAX);
  expect_invalid(kQwen, "shared_expert_intermediate_size", 0);
  expect_invalid(kQwen, "decoder_sparse_step", 0);
  expect_invalid(kDeepseekV2, "kv_lora_rank", 0);
  expect_invalid(kDeepseekV2, "qk_nope_head_dim", -128);
  expect_invalid(kDeepseekV2, "v_head_dim", 0);
  expect_invalid(kDeepseekV2, "n_shared_experts", 1 << 20);
  expect_invalid(kDeepseekV2, "moe_layer_freq", 0);
  expect_invalid(kOlmoe, "clip_qkv", -1.0);
}

TEST(Config, ContradictionsAreNamed) {
  expect_invalid(kQwen, "num_experts_per_tok", 61);
  expect_invalid(kMixtral, "num_experts_per_tok", 9);
  expect_invalid(kXverse, "moe_top_k", 65);
  expect_invalid(kQwen57, "num_key_value_heads", 3);
  expect_invalid(kQwen, "num_key_value_heads", 32);
  expect_invalid(kDeepseekV2, "num_key_value_heads", 8);
  expect_invalid(kXverse, "num_key_value_heads", 8);
  expect_invalid(kQwen3, "head_dim", 63);
  expect_invalid(kDeepseekV2, "qk_rope_head_dim", 33);
  expect_invalid(kQwen, "hidden_size", 2049);
  expect_invalid(kQwen, "hidden_size", 16 * 7);
  expect_invalid(kQwen, "mlp_only_layers", {24});
  expect_invalid(kQwen, "mlp_only_layers", {-1});
  expect_invalid(kQwen, "decoder_sparse_step", 25);
  expect_invalid(kDeepseek, "first_k_dense_replace", 28);
  expect_invalid(kDeepseek, "moe_layer_freq", 28);
  Json all_dense = Json::array();
  for (int layer = 0; layer < 24; ++layer) all_dense.push_back(layer);
  expect_invalid(kQwen, "mlp_only_layers", all_dense);
  // Each number is possible, but not all experts of all layers.
  Json many = with(published(kQwen), "num_experts", 8192);
  many["num_hidden_layers"] = 1024;
  expect_error(many, ErrorKind::kInvalid, "num_experts");
}

TEST(Config, LargestLegalModelHasATable) {
  Json json = published(kMixtral);
  json["num_hidden_layers"] = 1024;
  json["num_local_experts"] = 256;
  json["hidden_size"] = 1 << 18;
  json["intermediate_size"] = 1 << 20;
  json["num_attention_heads"] = 4096;
  json["num_key_value_heads"] = 4096;
  json["head_dim"] = 4096;
  json["vocab_size"] = 1 << 26;
  EXPECT_NO_THROW(tensor_table(parse(json)));
}

TEST(Config, NormalisationOfDeepseekNeedsTwoExperts) {
  Json json = with(published(kDeepseekV2), "norm_topk_prob", true);
  EXPECT_TRUE(parse(json).moe.renormalise);
  EXPECT_EQ(parse(json).moe.renormalise_epsilon, 1e-20f);
  json["num_experts_per_tok"] = 1;
  EXPECT_FALSE(parse(json).moe.renormalise);
}

TEST(Config, NotAnObject) {
  EXPECT_THROW(parse(Json::array()), Error);
  EXPECT_THROW(parse(Json(nullptr)), Error);
  EXPECT_THROW(parse(Json::object()), Error);
}

TEST(GenerationConfig, OverridesEosAndReadsSampling) {
  ModelConfig config = parse(published(kQwen));
  const GenerationConfig generation = parse_generation_config(
      read_json_file(SLUICE_SOURCE_DIR "/tests/data/configs/qwen1.5-moe-a2.7b.generation_config.json"),
      "g.json", config);
  EXPECT_TRUE(generation.do_sample);
  EXPECT_TRUE(generation.says_do_sample);
  EXPECT_TRUE(generation.says_top_k);
  EXPECT_EQ(generation.temperature, 0.7);
  EXPECT_EQ(generation.top_p, 0.8);
  EXPECT_EQ(generation.top_k, 20);
  EXPECT_EQ(generation.min_p, 0.0);
  EXPECT_EQ(generation.repetition_penalty, 1.05);
  EXPECT_THAT(config.eos, ElementsAre(151645, 151643));
  EXPECT_THAT(config.bos, ElementsAre(151643));
}

TEST(GenerationConfig, AbsentFieldsKeepDefaults) {
  ModelConfig config = parse(published(kQwen));
  const GenerationConfig generation = parse_generation_config(Json::object(), "g.json", config);
  EXPECT_FALSE(generation.do_sample);
  EXPECT_FALSE(generation.says_do_sample);
  EXPECT_FALSE(generation.says_top_k);
  EXPECT_EQ(generation.temperature, 1.0);
  EXPECT_EQ(generation.top_k, 50);
  EXPECT_THAT(config.eos, ElementsAre(151645));
}

TEST(GenerationConfig, NamesFieldsWhoseEffectIsMissing) {
  ModelConfig config = parse(published(kQwen));
  const auto read = [&](const Json& json) { return parse_generation_config(json, "g.json", config); };
  const GenerationConfig usual = read({{"num_beams", 1},
                                       {"length_penalty", 2.0},
                                       {"early_stopping", true},
                                       {"no_repeat_ngram_size", 0},
                                       {"suppress_tokens", Json::array()},
                                       {"forced_eos_token_id", nullptr},
                                       {"typical_p", 1.0},
                                       {"epsilon_cutoff", 0.0}});
  EXPECT_THAT(usual.ignored, IsEmpty());
  EXPECT_THAT(usual.ignored_in_sampling, IsEmpty());

  const GenerationConfig generation = read({{"num_beams", 4},
                                            {"length_penalty", 2.0},
                                            {"no_repeat_ngram_size", 3},
                                            {"suppress_tokens", {1}},
                                            {"bad_words_ids", {{1}}},
                                            {"forced_eos_token_id", 2},
                                            {"exponential_decay_length_penalty", {5, 1.1}},
                                            {"typical_p", 0.5},
                                            {"eta_cutoff", 1e-3}});
  EXPECT_THAT(generation.ignored,
              ElementsAre("num_beams", "length_penalty", "no_repeat_ngram_size", "suppress_tokens",
                          "bad_words_ids", "forced_eos_token_id", "exponential_decay_length_penalty"));
  EXPECT_THAT(generation.ignored_in_sampling, ElementsAre("typical_p", "eta_cutoff"));
}

TEST(GenerationConfig, NamesBadFields) {
  for (const auto& [field, value] : std::vector<std::pair<std::string, Json>>{{"temperature", -1},
                                                                              {"temperature", "hot"},
                                                                              {"top_p", 1.5},
                                                                              {"top_k", -1},
                                                                              {"min_p", 2},
                                                                              {"repetition_penalty", 0},
                                                                              {"do_sample", 1},
                                                                              {"eos_token_id", "x"}}) {
    ModelConfig config = parse(published(kQwen));
    try {
      parse_generation_config({{field, value}}, "g.json", config);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
      EXPECT_EQ(error.where(), "g.json: " + field);
    }
  }
}

}  // namespace
}  // namespace sluice::model::config_test
