// Synthetic models as GGUF files.
#include "model/synth/synth_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "device/space.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/gguf_checkpoint.h"
#include "tokenizer/chat/chat_sources.h"
#include "tokenizer/export/gguf_tokenizer_keys.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::model {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kQwen =
    R"({"model_type": "qwen3_moe", "vocab_size": 300, "hidden_size": 256, "head_dim": 32, "num_hidden_layers": 8,
  "num_attention_heads": 8, "num_key_value_heads": 2, "moe_intermediate_size": 96, "num_experts": 4,
  "num_experts_per_tok": 2, "norm_topk_prob": true, "max_position_embeddings": 512})";
constexpr std::string_view kDeepseek =
    R"({"model_type": "deepseek_v2", "vocab_size": 300, "hidden_size": 256, "num_hidden_layers": 2,
  "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
  "v_head_dim": 32, "intermediate_size": 256, "moe_intermediate_size": 64, "n_routed_experts": 4,
  "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1})";
// As published, but for sizes.
constexpr std::string_view kGptOss =
    R"({"model_type": "gpt_oss", "vocab_size": 300, "hidden_size": 128, "head_dim": 32, "num_hidden_layers": 4,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "num_local_experts": 4,
  "num_experts_per_tok": 2, "sliding_window": 16, "swiglu_limit": 7.0, "max_position_embeddings": 512,
  "quantization_config": {"quant_method": "mxfp4"}, "rope_theta": 150000, "rope_scaling": {"rope_type": "yarn",
  "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 64, "truncate": false}})";

class GgufSynth : public ::testing::Test {
 protected:
  SynthPlan plan(std::string_view config) {
    std::ofstream(scratch_.path() + "/config.json") << config;
    return plan_synth(scratch_.path() + "/config.json", {.seed = 5});
  }
  std::string write(const SynthPlan& synth, std::string_view mix) {
    const std::string path = scratch_.path() + "/" + std::string(mix) + ".gguf";
    write_gguf_synth(plan_gguf_synth(synth, GgufMix(mix)), path, threads_, [](Bytes) { return true; });
    return path;
  }
  // What the tensors of a file are stored in.
  static std::string format_in(const store::Checkpoint& gguf, const std::string& name) {
    const store::TensorInfo* const tensor = gguf.find(name);
    if (tensor == nullptr) return "none";
    return std::string(tensor->format == nullptr ? dtype_name(tensor->dtype) : tensor->format->name);
  }
  // The numbers of a piece.
  static std::vector<float> numbers(const store::Checkpoint& checkpoint, const store::Piece& piece) {
    const store::StoredPiece stored = checkpoint.locate(piece);
    std::string bytes(stored.first().length, '\0');
    std::ifstream file(checkpoint.weight_files()[stored.first().file], std::ios::binary);
    file.seekg(static_cast<std::streamoff>(stored.first().offset));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const codec::MatrixRef matrix{
        stored.format,
        stored.shape,
        {device::host_space().address(reinterpret_cast<const std::byte*>(bytes.data()))}};
    std::vector<float> numbers(piece.elements);
    for (std::uint64_t row = 0; row < stored.shape.rows; ++row)
      codec::row_to_float(matrix, row, numbers.data() + row * stored.shape.columns);
    return numbers;
  }

  const sluice::testing::ScratchDirectory scratch_;
  ThreadPool threads_{2};
};

TEST_F(GgufSynth, HasTheTokenizerThatItIsGiven) {
  const SynthPlan synth = plan(kQwen);
  EXPECT_EQ(tokenizer::load_tokenizer_of(*store::open_gguf(write(synth, "f32"))), nullptr);
  const std::string directory = scratch_.path() + "/tokenizer";
  std::filesystem::create_directory(directory);
  std::ofstream(directory + "/chat_template.jinja") << "{{ messages[0].content }}";
  std::ofstream(directory + "/tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3}, "merges": ["a b"]},
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
             "added_tokens": [{"id": 4, "content": "<end>", "special": true}]})";
  const std::string path = scratch_.path() + "/with.gguf";
  write_gguf_synth(plan_gguf_synth(synth, GgufMix("f32"), tokenizer::gguf_tokenizer_keys(directory, 300)),
                   path, threads_, [](Bytes) { return true; });
  const auto gguf = store::open_gguf(path);
  EXPECT_EQ(describe_model(*gguf).config.vocab, 300u);
  const auto tokenizer = tokenizer::load_tokenizer_of(*gguf);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("ab b<end>a", tokenizer::AddSpecial::kYes),
            (std::vector<tokenizer::TokenId>{2, 3, 1, 4, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 5u);
  EXPECT_EQ(tokenizer->decode(std::vector<tokenizer::TokenId>{2, 3, 299, 0}, tokenizer::ShowSpecial::kYes),
            "ab a");
  const auto chat = tokenizer::read_chat_sources(*gguf);
  ASSERT_EQ(chat.templates.size(), 1u);
  EXPECT_EQ(chat.templates[0].text, "{{ messages[0].content }}");
}

// The same numbers as in a directory, but for what a type loses.
TEST_F(GgufSynth, HasTheNumbersOfTheDirectory) {
  const SynthPlan synth = plan(kQwen);
  const std::string directory = scratch_.path() + "/directory";
  write_synth(synth, directory, threads_, [](Bytes) { return true; });
  const auto words = store::open_directory(directory);
  const Model of_words = describe_model(*words);
  for (const auto& [mix, loss] : {std::pair{"bf16", 0.}, {"f32", 0.}, {"q8_0", .01}, {"q4_k_m", .15}}) {
    SCOPED_TRACE(mix);
    const auto gguf = store::open_gguf(write(synth, mix));
    const Model of_gguf = describe_model(*gguf);
    ASSERT_EQ(of_gguf.experts.size(), of_words.experts.size());
    for (std::size_t i = 0; i < of_words.experts.size(); i += 5) {
      const std::vector<float> wanted = numbers(*words, of_words.experts[i].down),
                               found = numbers(*gguf, of_gguf.experts[i].down);
      double error = 0, power = 0;
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        error += std::pow(wanted[k] - found[k], 2);
        power += std::pow(wanted[k], 2);
      }
      EXPECT_LE(std::sqrt(error / power), loss);
    }
  }
}

TEST_F(GgufSynth, AMixGivesMoreBitsToSome) {
  const SynthPlan synth = plan(kQwen);
  const auto gguf = store::open_gguf(write(synth, "q4_k_m"));
  const auto format = [&](const std::string& name) { return format_in(*gguf, name); };
  EXPECT_EQ(format("output.weight"), "q6_k");
  EXPECT_EQ(format("token_embd.weight"), "q4_k");
  EXPECT_EQ(format("blk.0.attn_v.weight"), "q6_k");  // the first eighth
  EXPECT_EQ(format("blk.1.attn_v.weight"), "q4_k");
  EXPECT_EQ(format("blk.3.attn_v.weight"), "q6_k");  // every third
  EXPECT_EQ(format("blk.7.attn_v.weight"), "q6_k");  // the last eighth
  EXPECT_EQ(format("blk.1.ffn_up_exps.weight"), "q4_k");
  EXPECT_EQ(format("blk.0.ffn_down_exps.weight"), "q8_0");  // rows of 96: no block of 256 fits
  EXPECT_EQ(format("blk.1.ffn_down_exps.weight"), "q5_0");
  EXPECT_EQ(format("blk.0.ffn_gate_inp.weight"), "F32");
  EXPECT_EQ(format("output_norm.weight"), "F32");
}

TEST_F(GgufSynth, EveryFormatIsWrittenAndRead) {
  const SynthPlan synth = plan(kQwen);
  for (const std::string& mix : GgufMix::names()) {
    SCOPED_TRACE(mix);
    const auto gguf = store::open_gguf(write(synth, mix));
    EXPECT_EQ(describe_model(*gguf).experts.size(), 32u);
    EXPECT_EQ(gguf->weight_files().size(), 1u);
  }
}

TEST_F(GgufSynth, LatentAttentionHasItsHalves) {
  const auto gguf = store::open_gguf(write(plan(kDeepseek), "q8_0"));
  const Model model = describe_model(*gguf);
  ASSERT_NE(model.find(Role::kKeyUp, 1), nullptr);
  EXPECT_EQ(model.find(Role::kKeyUp, 1)->shape, (std::vector<std::uint64_t>{4 * 64, 32}));
  EXPECT_EQ(model.find(Role::kKvUp, 1), nullptr);
}

TEST_F(GgufSynth, GptOssHasGateAndUpApart) {
  const SynthPlan synth = plan(kGptOss);
  const auto gguf = store::open_gguf(write(synth, "mxfp4_moe"));
  for (const char* const name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    const std::string stem = "blk.3." + std::string(name);
    EXPECT_EQ(format_in(*gguf, stem + ".weight"), "mxfp4");
    EXPECT_EQ(format_in(*gguf, stem + ".bias"), "F32");
  }
  EXPECT_EQ(gguf->find("blk.0.ffn_gate_exps.bias")->shape, (std::vector<std::uint64_t>{4, 96}));
  EXPECT_EQ(gguf->find("blk.0.ffn_down_exps.bias")->shape, (std::vector<std::uint64_t>{4, 128}));
  for (const char* const vector :
       {"attn_sinks.weight", "attn_q.bias", "attn_output.bias", "ffn_gate_inp.weight", "ffn_gate_inp.bias",
        "attn_norm.weight", "post_attention_norm.weight"})
    EXPECT_EQ(format_in(*gguf, "blk.2." + std::string(vector)), "F32") << vector;
  for (const char* const matrix : {"token_embd.weight", "output.weight", "blk.1.attn_v.weight"})
    EXPECT_EQ(format_in(*gguf, matrix), "q8_0") << matrix;
  // Experts that are published in MXFP4 have it in mixes, too.
  const auto medium = store::open_gguf(write(synth, "q4_k_m"));
  EXPECT_EQ(format_in(*medium, "blk.0.ffn_down_exps.weight"), "mxfp4");
  EXPECT_EQ(format_in(*medium, "blk.1.attn_q.weight"), "q5_0");  // rows of 128: no block of 256 fits
}

TEST_F(GgufSynth, GptOssIsReadAsItWasPublished) {
  const SynthPlan synth = plan(kGptOss);
  const ModelConfig read = describe_model(*store::open_gguf(write(synth, "mxfp4_moe"))).config;
  EXPECT_EQ(read.model_type, "gpt_oss");
  EXPECT_EQ(read.activation.kind, Activation::kClampedSwiGlu);
  EXPECT_EQ(read.activation.limit, 7.0f);
  EXPECT_EQ(read.activation.alpha, 1.702f);
  EXPECT_EQ(read.attention.layer_windows, (std::vector<std::uint32_t>{16, 0, 16, 0}));
  EXPECT_EQ(read.attention.head_dim, 32u);
  EXPECT_EQ(read.attention.kv_heads, 2u);
  EXPECT_TRUE(read.attention.qkv_bias && read.attention.o_bias && read.attention.sinks);
  EXPECT_EQ(read.attention.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(read.attention.rope.theta, 150000.0);
  EXPECT_EQ(read.attention.rope.factor, 32.0);
  EXPECT_EQ(read.attention.rope.original_max_positions, 64u);
  EXPECT_FALSE(read.attention.rope.truncate);
  EXPECT_FALSE(read.attention.rope.interleaved);
  EXPECT_FLOAT_EQ(read.rms_eps, 1e-5f);
  EXPECT_EQ(read.moe.width, 96u);
  EXPECT_TRUE(read.moe.router_bias && read.moe.renormalise);
}

TEST_F(GgufSynth, WhatNoFileOfGptOssSaysIsRefused) {
  const auto error = [&](const char* from, const char* to) {
    std::string config(kGptOss);
    config.replace(config.find(from), std::string_view(from).size(), to);
    return sluice::testing::error_of([&] { plan_gguf_synth(plan(config), GgufMix("mxfp4_moe")); });
  };
  EXPECT_EQ(error("16", "17"), "no error");
  EXPECT_THAT(error("7.0", "6.5"), HasSubstr("swiglu_limit: no GGUF file can say what the config says; "
                                             "expected 7, found 6.5"));
  EXPECT_THAT(error("\"swiglu_limit\"", "\"swiglu_alpha\""), HasSubstr("expected 1.702, found 7"));
  EXPECT_THAT(error("\"truncate\": false", "\"truncate\": true"), HasSubstr("rope_scaling.truncate"));
  EXPECT_THAT(
      error("\"sliding_window\": 16",
            R"("layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"])"),
      HasSubstr("layer_types"));
}

TEST_F(GgufSynth, WhatCannotBeIsSaid) {
  EXPECT_THAT(sluice::testing::error_of([&] { GgufMix("q4_k_x"); }), HasSubstr("q4_k_m"));
  const SynthPlan synth = plan(kQwen);
  const std::string path = write(synth, "q8_0");
  EXPECT_THAT(sluice::testing::error_of([&] { write(synth, "q8_0"); }), HasSubstr(path));
  std::filesystem::remove(path);
  EXPECT_THAT(sluice::testing::error_of([&] {
                write_gguf_synth(plan_gguf_synth(synth, GgufMix("q8_0")), path, threads_,
                                 [](Bytes) { return false; });
              }),
              HasSubstr("nothing is left behind"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.path()), {}), 1) << "config.json";
}

}  // namespace
}  // namespace sluice::model
