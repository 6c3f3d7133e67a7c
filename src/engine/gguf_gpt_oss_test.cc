// gpt-oss in GGUF files, where gate and up of an expert are two matrices: the logits of the published form,
// in which their rows stand by turns, bit for bit, on every unit and instruction set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "base/machine/thread_pool.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "fetch/memory/expert_store.h"
#include "model/gguf_fixture.h"
#include "model/golden_models.h"
#include "model/synth/synth.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::gguf_gpt_oss_test {
namespace {

using model::testing::GgufModel;
using ::testing::HasSubstr;

// Longer than the windows of both models.
const std::vector<tokenizer::TokenId> kPrompt = {5, 17, 200, 33,  41, 8,  97, 150,
                                                 2, 61, 77,  120, 9,  44, 44, 3};

// The test's own heap grows meanwhile.
constexpr Bytes kSlack = 512 * kKiB;

struct Opened {
  explicit Opened(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

EngineOptions few_threads() {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = Math::kF32;
  options.positions = 32;
  options.fetch.io = fetch::IoMode::kBuffered;
  options.prefetch = "none";  // how many reads are ahead of demand is a matter of time
  return options;
}

struct Result {
  std::vector<float> logits;
  Bytes minimum = 0;
  std::uint64_t reads = 0, on_device = 0;
};
Result result_of(const Opened& opened, const EngineOptions& options) {
  Engine engine(*opened.checkpoint, opened.model, resolve(options, *opened.checkpoint, opened.model), 1);
  const auto sequence = engine.new_sequence();
  Result result;
  engine.prefill(*sequence, kPrompt,
                 {[](std::size_t) { return true; },
                  [&](std::size_t, std::span<const float> row) {
                    result.logits.insert(result.logits.end(), row.begin(), row.end());
                  }});
  const RunReport report = engine.report();
  result.minimum = report.memory.minimum;
  result.reads = report.experts.counters().demand_reads;
  if (report.device != nullptr) result.on_device = report.device->accountant().peak();
  return result;
}

bool have_the_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class GptOssGguf : public ::testing::TestWithParam<std::string> {
 protected:
  GptOssGguf() : published_(sluice::testing::kGoldenModels + "/" + GetParam()), file_(write()) {
    // The tiny models have numbers of their own where a file has those of the architecture's name.
    const model::ModelConfig& published = published_.model.config;
    file_.model.config.activation.limit = published.activation.limit;
    file_.model.config.activation.alpha = published.activation.alpha;
    file_.model.config.attention.layer_windows = published.attention.layer_windows;
  }

  std::string write() const {
    GgufModel(sluice::testing::kGoldenModels + "/" + GetParam()).write(scratch_.path() + "/model.gguf");
    return scratch_.path() + "/model.gguf";
  }

  const sluice::testing::ScratchDirectory scratch_;
  const Opened published_;
  Opened file_;
};

TEST_P(GptOssGguf, HasThreeMatricesWhereTheDirectoryHasTwo) {
  EXPECT_EQ(published_.model.config.expert_matrices(), 2u);
  EXPECT_EQ(file_.model.config.expert_matrices(), 3u);
  EXPECT_EQ(file_.model.config.activation.kind, model::Activation::kClampedSwiGlu);
  EXPECT_EQ(file_.model.config.expert_elements(), published_.model.config.expert_elements());
  EXPECT_EQ(file_.model.config.attention.qkv_bias, published_.model.config.attention.qkv_bias);
  ASSERT_EQ(file_.model.experts.size(), published_.model.experts.size());
  for (const store::Piece& piece : file_.model.experts.back().all())
    EXPECT_EQ(file_.checkpoint->locate(piece).format, &codec::kFormatMxfp4) << piece.tensor;
}

TEST_P(GptOssGguf, HasTheLogitsOfTheDirectoryAtEveryBudget) {
  const Result expected = result_of(published_, few_threads()), whole = result_of(file_, few_threads());
  EXPECT_TRUE(have_the_same_bits(whole.logits, expected.logits));
  for (const char* const cache : {"none", "lru"})
    for (const std::uint32_t chunk : {1u, 3u, 16u}) {
      SCOPED_TRACE(std::string(cache) + ", chunks of " + std::to_string(chunk));
      EngineOptions tight = few_threads();
      tight.memory = whole.minimum + kSlack;
      tight.cache = cache;
      tight.chunk = chunk;
      const Result found = result_of(file_, tight);
      EXPECT_TRUE(have_the_same_bits(found.logits, expected.logits));
      if (chunk == 1 && tight.cache == "none") {
        EXPECT_GT(found.reads, whole.reads) << "experts are read again";
      }
    }
}

TEST_P(GptOssGguf, HasTheSameBitsOnEveryInstructionSet) {
  const Result expected = result_of(published_, few_threads());
  for (const Isa isa : available_isas())
    for (const std::uint32_t chunk : {1u, 16u}) {
      EngineOptions options = few_threads();
      options.isa = isa_name(isa);
      options.threads = 1;
      options.chunk = chunk;
      EXPECT_TRUE(have_the_same_bits(result_of(file_, options).logits, expected.logits)) << isa_name(isa);
    }
}

TEST_P(GptOssGguf, HasTheSameBitsOnADevice) {
  const Result expected = result_of(published_, few_threads());
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice})
    for (const char* const placement : {"device", "greedy"})
      for (const std::uint32_t chunk : {1u, 7u}) {
        SCOPED_TRACE(std::string(placement) + ", chunks of " + std::to_string(chunk));
        EngineOptions options = few_threads();
        options.device = "emulated:link=inf,compute=inf,latency=0us";
        options.device_slots = 2;
        options.placement = placement;
        options.dense_on = dense_on;
        options.chunk = chunk;
        const Result found = result_of(file_, options);
        EXPECT_TRUE(have_the_same_bits(found.logits, expected.logits));
        EXPECT_GT(found.on_device, 0u);
      }
}

INSTANTIATE_TEST_SUITE_P(Models, GptOssGguf, ::testing::Values("gpt_oss_a", "gpt_oss_b"),
                         [](const auto& info) { return info.param; });

// Widths of 256, so that every type fits.
constexpr std::string_view kWideGptOss =
    R"({"model_type": "gpt_oss", "vocab_size": 256, "hidden_size": 256, "head_dim": 32, "num_hidden_layers": 4,
  "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 256, "num_local_experts": 12,
  "num_experts_per_tok": 2, "sliding_window": 5, "max_position_embeddings": 512,
  "quantization_config": {"quant_method": "mxfp4"}})";

class WideGptOss : public ::testing::Test {
 protected:
  WideGptOss() {
    std::ofstream(scratch_.path() + "/config.json") << kWideGptOss;
    ThreadPool threads(2);
    model::write_synth(model::plan_synth(scratch_.path() + "/config.json", {}), directory_, threads,
                       [](Bytes) { return true; });
  }
  const sluice::testing::ScratchDirectory scratch_;
  const std::string directory_ = scratch_.path() + "/directory";
};

// The constants that no key says are those of the published class.
TEST_F(WideGptOss, HasTheLogitsOfTheDirectory) {
  const std::string path = scratch_.path() + "/model.gguf";
  GgufModel(directory_).write(path);
  const Result expected = result_of(Opened(directory_), few_threads()),
               whole = result_of(Opened(path), few_threads());
  EXPECT_TRUE(have_the_same_bits(whole.logits, expected.logits));
  for (const Bytes experts : {Bytes{0}, 1 * kMiB}) {  // all are 5 MiB
    EngineOptions tight = few_threads();
    tight.memory = whole.minimum + experts + kSlack;
    tight.chunk = 2;
    const Result found = result_of(Opened(path), tight);
    EXPECT_TRUE(have_the_same_bits(found.logits, expected.logits)) << experts;
    EXPECT_GT(found.reads, whole.reads) << "some expert was read again";
  }
}

TEST_F(WideGptOss, EveryTypeHasTheLogitsOfItsNumbers) {
  for (const std::string_view type : {"Q8_0", "Q4_K", "Q6_K", "Q4_0", "Q5_0", "Q5_K", "Q3_K", "Q2_K", "Q4_1",
                                      "Q5_1", "IQ4_NL", "IQ4_XS", "MXFP4"}) {
    SCOPED_TRACE(std::string(type));
    GgufModel gguf(directory_);
    gguf.quantise(
        [&](const std::string& name) {
          const bool matrix = name.find("_exps.weight") != std::string::npos ||
                              name.find("attn_output.weight") != std::string::npos;
          return matrix ? type : std::string_view();
        },
        11);
    const std::string path = scratch_.path() + "/quantised.gguf", words = scratch_.path() + "/words.gguf";
    gguf.write(path);
    gguf.decoded().write(words);
    const Result quantised = result_of(Opened(path), few_threads()),
                 plain = result_of(Opened(words), few_threads());
    EXPECT_TRUE(have_the_same_bits(quantised.logits, plain.logits));
    EXPECT_TRUE(std::ranges::all_of(quantised.logits, [](float logit) { return std::isfinite(logit); }));
  }
}

// A changed number of each new tensor changes the logits: none is left unread.
TEST_F(WideGptOss, EveryTensorCounts) {
  const std::string path = scratch_.path() + "/model.gguf";
  GgufModel gguf(directory_);
  gguf.write(path);
  const std::vector<float> whole = result_of(Opened(path), few_threads()).logits;
  for (const char* const name :
       {"attn_sinks.weight", "attn_q.bias", "attn_output.bias", "post_attention_norm.weight",
        "ffn_gate_inp.bias", "ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias"}) {
    SCOPED_TRACE(name);
    GgufModel changed = gguf;
    std::string& bytes = changed.tensors().at("blk.1." + std::string(name)).bytes;
    for (std::size_t at = 3; at < bytes.size(); at += 8) bytes[at] ^= '\x80';  // the sign of every other one
    changed.write(path);
    EXPECT_FALSE(have_the_same_bits(result_of(Opened(path), few_threads()).logits, whole));
  }
}

TEST_F(WideGptOss, WhatNobodyComputesIsNamed) {
  const std::string path = scratch_.path() + "/model.gguf";
  const auto error_with = [&](std::string_view key, store::GgufWritten value) {
    GgufModel gguf(directory_);
    const std::string name = key.starts_with("general.") ? std::string(key) : gguf.key(key);
    std::erase_if(gguf.keys(), [&](const auto& old) { return old.first == name; });
    gguf.keys().emplace_back(name, std::move(value));
    gguf.write(path);
    return sluice::testing::error_of([&] { Opened opened(path); });
  };
  EXPECT_EQ(error_with("expert_gating_func", std::uint32_t{3}), "no error");
  EXPECT_EQ(error_with("attention.sliding_window_pattern", std::uint32_t{2}), "no error");
  EXPECT_THAT(error_with("expert_gating_func", std::uint32_t{2}),
              HasSubstr("gpt-oss.expert_gating_func: the key has a value that is not supported; expected 3"));
  EXPECT_THAT(error_with("attention.sliding_window_pattern", std::uint32_t{4}),
              HasSubstr("sliding_window_pattern"));
  EXPECT_EQ(error_with("rope.freq_base_swa", 150000.0f), "no error");
  EXPECT_THAT(error_with("rope.freq_base_swa", 10000.0f), HasSubstr("rope.freq_base_swa"));
  EXPECT_THAT(error_with("attention.value_length", std::uint32_t{64}), HasSubstr("value_length"));
  EXPECT_THAT(error_with("expert_weights_scale", 2.5f), HasSubstr("expert_weights_scale"));
  EXPECT_THAT(error_with("general.architecture", std::string("gptoss")),
              AllOf(HasSubstr("expected gpt-oss, found \"gptoss\""), HasSubstr("safetensors")));
  GgufModel gguf(directory_);
  gguf.tensors().erase("blk.1.ffn_gate_exps.bias");
  gguf.write(path);
  EXPECT_THAT(sluice::testing::error_of([&] { Opened opened(path); }),
              HasSubstr("blk.1.ffn_gate_exps.bias: tensor is missing"));
}

}  // namespace
}  // namespace sluice::engine::gguf_gpt_oss_test
