// Models in GGUF files: the logits of the same words in a published directory, and of quantised matrices
// those of their numbers as fp32 words, at every budget and in parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "base/machine/thread_pool.h"
#include "engine/device_budget.h"
#include "engine/engine.h"
#include "engine/engine_device.h"
#include "engine/engine_hooks.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "experts/device_decider.h"
#include "fetch/memory/expert_store.h"
#include "kernels/gpu/gpu_kernels.h"
#include "model/gguf_fixture.h"
#include "model/golden_models.h"
#include "model/synth/synth.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::gguf_test {
namespace {

using model::testing::GgufModel;
using ::testing::HasSubstr;

const std::vector<tokenizer::TokenId> kTokens = {5, 17, 200, 33, 41, 8, 97, 150, 2, 61, 77, 120, 9};

EngineOptions small_options() {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = Math::kF32;
  options.positions = 32;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

struct Ran {
  std::vector<float> logits;
  Bytes minimum = 0;
  std::uint64_t reads = 0;
};
std::vector<float> prompt_logits(Engine& engine) {
  std::vector<float> logits;
  const auto sequence = engine.new_sequence();
  engine.prefill(*sequence, kTokens,
                 {[](std::size_t) { return true; },
                  [&](std::size_t, std::span<const float> row) {
                    logits.insert(logits.end(), row.begin(), row.end());
                  }});
  return logits;
}

Ran run(const std::string& path, const EngineOptions& options) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 4);
  Ran ran{.logits = prompt_logits(engine)};
  ran.minimum = engine.report().memory.minimum;
  ran.reads = engine.report().experts.counters().demand_reads;
  return ran;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Models whose configuration a GGUF file can say. MLA computes with the transposed matrix there, in another
// order of sums.
struct Published {
  std::string_view name;
  bool same_bits = true;
};
void PrintTo(const Published& published, std::ostream* out) { *out << published.name; }

class GgufOf : public ::testing::TestWithParam<Published> {
 protected:
  std::string directory() const {
    return sluice::testing::kGoldenModels + "/" + std::string(GetParam().name);
  }
  const sluice::testing::ScratchDirectory scratch_;
};

TEST_P(GgufOf, HasTheLogitsOfTheDirectory) {
  const std::string path = scratch_.path() + "/model.gguf";
  GgufModel(directory()).write(path);
  const std::vector<float> expected = run(directory(), small_options()).logits,
                           found = run(path, small_options()).logits;
  ASSERT_EQ(found.size(), expected.size());
  if (GetParam().same_bits) {
    EXPECT_TRUE(same_bits(found, expected));
    return;
  }
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max<double>(largest, std::abs(expected[i]));
    worst = std::max<double>(worst, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(worst, 1e-5 * largest);
}

TEST_P(GgufOf, ComesInParts) {
  const GgufModel gguf(directory());
  const std::string whole = scratch_.path() + "/model.gguf";
  gguf.write(whole);
  const std::string first = gguf.write_parts(scratch_.path() + "/parts", 7);
  EXPECT_TRUE(same_bits(run(first, small_options()).logits, run(whole, small_options()).logits));
}

INSTANTIATE_TEST_SUITE_P(Models, GgufOf,
                         ::testing::Values(Published{"qwen2_moe_a"}, Published{"qwen3_moe_a"},
                                           Published{"qwen3_moe_b"}, Published{"olmoe_a"},
                                           Published{"olmoe_b"}, Published{"mixtral_a"},
                                           Published{"mixtral_b"}, Published{"deepseek_a"},
                                           Published{"deepseek_v2_a", false},
                                           Published{"deepseek_v2_b", false}),
                         [](const auto& info) { return std::string(info.param.name); });

// Widths of 256, so that every type fits.
constexpr std::string_view kConfig =
    R"({"model_type": "qwen3_moe", "vocab_size": 256, "hidden_size": 256, "head_dim": 32, "num_hidden_layers": 3,
  "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 256, "moe_intermediate_size": 256,
  "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": true, "rope_theta": 10000.0,
  "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2})";

constexpr std::string_view kTypes[] = {"Q8_0", "Q4_K", "Q6_K", "Q4_0",   "Q5_0",   "Q5_K", "Q3_K",
                                       "Q2_K", "Q4_1", "Q5_1", "IQ4_NL", "IQ4_XS", "MXFP4"};

class QuantisedGguf : public ::testing::Test {
 protected:
  QuantisedGguf() {
    std::ofstream(scratch_.path() + "/config.json") << kConfig;
    ThreadPool threads(2);
    model::write_synth(model::plan_synth(scratch_.path() + "/config.json", {}), directory_, threads,
                       [](Bytes) { return true; });
  }

  // Every matrix in a type, in turn: those of an expert differ, and those of layers.
  GgufModel mixed() const {
    GgufModel gguf(directory_);
    std::size_t next = 0;
    gguf.quantise(
        [&](const std::string& name) {
          const bool vector =
              name.find("norm") != std::string::npos || name.find("gate_inp") != std::string::npos;
          return vector ? std::string_view() : kTypes[next++ % std::size(kTypes)];
        },
        7);
    return gguf;
  }

  const sluice::testing::ScratchDirectory scratch_;
  const std::string directory_ = scratch_.path() + "/directory";
};

TEST_F(QuantisedGguf, EveryTypeHasTheLogitsOfItsNumbers) {
  for (const std::string_view type : kTypes) {
    SCOPED_TRACE(std::string(type));
    GgufModel gguf(directory_);
    gguf.quantise(
        [&](const std::string& name) {
          const bool matrix = name.find("_exps") != std::string::npos ||
                              name.find("attn_q.") != std::string::npos || name == "output.weight" ||
                              name == "token_embd.weight";
          return matrix ? type : std::string_view();
        },
        3);
    const std::string path = scratch_.path() + "/quantised.gguf", words = scratch_.path() + "/words.gguf";
    gguf.write(path);
    gguf.decoded().write(words);
    const Ran quantised = run(path, small_options()), plain = run(words, small_options());
    EXPECT_TRUE(same_bits(quantised.logits, plain.logits));
    EXPECT_TRUE(std::ranges::all_of(quantised.logits, [](float logit) { return std::isfinite(logit); }));
  }
}

TEST_F(QuantisedGguf, MixedTypesHaveTheSameBitsAtEveryBudget) {
  const GgufModel gguf = mixed();
  const std::string path = scratch_.path() + "/mixed.gguf", words = scratch_.path() + "/words.gguf";
  gguf.write(path);
  gguf.decoded().write(words);
  EngineOptions enough = small_options();
  enough.prefetch = "none";  // how many reads are ahead of demand is a matter of time
  const Ran expected = run(words, small_options()), whole = run(path, enough);
  EXPECT_TRUE(same_bits(whole.logits, expected.logits));
  for (const Bytes more : {256 * kKiB, 512 * kKiB}) {  // all experts that are used fit with 900 KiB
    EngineOptions tight = enough;
    tight.memory = whole.minimum + more;
    tight.chunk = 3;
    const Ran found = run(path, tight);
    EXPECT_TRUE(same_bits(found.logits, expected.logits)) << more;
    EXPECT_GT(found.reads, whole.reads) << "some expert was read again";
  }
  for (const Isa isa : available_isas()) {
    EngineOptions options = small_options();
    options.isa = isa_name(isa);
    options.threads = 1;
    EXPECT_TRUE(same_bits(run(path, options).logits, expected.logits)) << isa_name(isa);
  }
}

// Blocks are multiplied with activations in codes of 8 bits.
EngineOptions coded_options() {
  EngineOptions options = small_options();
  options.math = Math::kAuto;
  options.kv = DType::kF32;
  options.activations = kernels::ActivationForm::kInt8;
  options.prefetch = "none";
  return options;
}

// The distance of two vectors by the length of the second.
double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = static_cast<double>(found[i]) - expected[i];
    apart += difference * difference;
    all += static_cast<double>(expected[i]) * expected[i];
  }
  return std::sqrt(apart / all);
}

TEST_F(QuantisedGguf, ActivationsInCodesAreNearFp32InEveryType) {
  for (const std::string_view type : kTypes) {
    SCOPED_TRACE(std::string(type));
    GgufModel gguf(directory_);
    gguf.quantise(
        [&](const std::string& name) {
          const bool vector =
              name.find("norm") != std::string::npos || name.find("gate_inp") != std::string::npos;
          return vector ? std::string_view() : type;
        },
        3);
    // Every token uses all experts: a changed choice would hide what the products lose.
    for (auto& [key, value] : gguf.keys())
      if (key == gguf.key("expert_used_count")) value = gguf.config().moe.experts;
    const std::string path = scratch_.path() + "/coded.gguf";
    gguf.write(path);
    EngineOptions plain = coded_options();
    plain.activations.reset();
    const Ran coded = run(path, coded_options()), fp32 = run(path, plain);
    const double error = distance(coded.logits, fp32.logits);
    std::cout << type << ": logits are apart by " << error << " of their length" << std::endl;
    EXPECT_GT(error, 1e-5);  // the flag does something
    EXPECT_LT(error, 0.05);
  }
}

TEST_F(QuantisedGguf, ActivationsInCodesHaveTheSameBitsAtEveryBudgetAndOnEveryInstructionSet) {
  const GgufModel gguf = mixed();
  const std::string path = scratch_.path() + "/mixed.gguf";
  gguf.write(path);
  run(path, coded_options());  // has the code in memory that the process is charged for
  const Ran whole = run(path, coded_options());
  for (const std::size_t chunk : {1, 3, 7}) {
    EngineOptions tight = coded_options();
    tight.memory = whole.minimum + 512 * kKiB;
    tight.chunk = chunk;
    EXPECT_TRUE(same_bits(run(path, tight).logits, whole.logits)) << chunk;
  }
  for (const Isa isa : available_isas()) {
    for (const unsigned threads : {1u, 3u}) {
      EngineOptions options = coded_options();
      options.isa = isa_name(isa);
      options.threads = threads;
      EXPECT_TRUE(same_bits(run(path, options).logits, whole.logits)) << isa_name(isa) << ' ' << threads;
    }
  }
}

TEST_F(QuantisedGguf, ActivationsInCodesHaveTheSameBitsOnADevice) {
  const GgufModel gguf = mixed();
  const std::string path = scratch_.path() + "/mixed.gguf";
  gguf.write(path);
  const Ran host = run(path, coded_options());
  for (const DenseOn dense_on : {DenseOn::kHost, DenseOn::kDevice}) {
    for (const std::size_t chunk : {1, 7}) {
      EngineOptions options = coded_options();
      options.device = "emulated:link=inf,compute=inf,latency=0us";
      options.device_slots = 2;
      options.placement = "device";
      options.dense_on = dense_on;
      options.chunk = chunk;
      EXPECT_TRUE(same_bits(run(path, options).logits, host.logits)) << chunk;
    }
  }
}

// A GPU whose kernels run in lockstep.
EngineHooks gpu_hooks() {
  EngineHooks hooks;
  hooks.devices.facts = [](const device::DeviceSpec&) {
    return device::DeviceFacts{"Fake GPU, compute 9.0", kMiB, kGiB};
  };
  hooks.devices.make = [](const device::DeviceSpec&, device::DeviceOptions made) {
    return device::make_device(
        device::parse_device_spec("emulated:link=inf,compute=inf,latency=0us", "the device"),
        std::move(made));
  };
  hooks.kernels = [](device::Device&) { return kernels::make_lockstep_kernels(); };
  return hooks;
}

// A GPU computes what it has kernels for, and the host the rest.
TEST_F(QuantisedGguf, WhatAGpuHasNoKernelsForStaysOnTheHost) {
  const EngineHooks hooks = gpu_hooks();
  const std::string path = scratch_.path() + "/parts.gguf";
  struct Case {
    std::string_view experts, dense;
    DenseOn dense_on;
    bool there, experts_there;
  };
  for (const Case& one :
       {Case{"Q4_K", "Q6_K", DenseOn::kAuto, true, true}, Case{"Q5_K", "Q8_0", DenseOn::kAuto, true, false},
        Case{"MXFP4", "Q5_K", DenseOn::kAuto, false, true},
        Case{"Q4_K", "IQ4_XS", DenseOn::kHost, false, true},
        Case{"Q2_K", "Q3_K", DenseOn::kAuto, false, false}}) {
    SCOPED_TRACE(std::string(one.experts) + ", dense " + std::string(one.dense));
    GgufModel gguf(directory_);
    gguf.quantise(
        [&](const std::string& name) {
          if (name.find("_exps") != std::string::npos) return one.experts;
          return name.find("attn_q.") != std::string::npos ? one.dense : std::string_view();
        },
        5);
    gguf.write(path);
    const auto checkpoint = store::open_checkpoint(path);
    const model::Model model = model::describe_model(*checkpoint);
    EngineOptions options = small_options();
    options.device = "cuda";
    options.math = Math::kF32;
    options.dense_on = one.dense_on;
    options.device_memory = 64 * kMiB;
    options.placement = "device";
    Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 4, hooks);
    const RunReport report = engine.report();
    EXPECT_EQ(report.device->has_dense(), one.there);
    EXPECT_EQ(report.dense_place.why.find("no kernels for dense") != std::string::npos,
              one.dense_on == DenseOn::kAuto && !one.there)
        << report.dense_place.why;
    EXPECT_EQ(report.device->takes_none(), !one.experts_there);
    EXPECT_NE(report.plan.device->experts_lack.any(), one.experts_there)
        << report.plan.device->experts_lack.formats;
    const std::vector<float> logits = prompt_logits(engine);
    EngineOptions alone = small_options();
    alone.math = Math::kF32;
    EXPECT_TRUE(same_bits(logits, run(path, alone).logits));
    if (one.there || one.dense_on == DenseOn::kHost) continue;
    options.dense_on = DenseOn::kDevice;
    EXPECT_THAT(sluice::testing::error_of(
                    [&] { Engine(*checkpoint, model, resolve(options, *checkpoint, model), 4, hooks); }),
                HasSubstr("--dense-on: the device has no kernels for the dense weights"));
  }
}

// The down matrices of one layer are in a format that no kernel reads: the host has that layer's experts.
TEST_F(QuantisedGguf, LayersThatAGpuHasNoKernelsForStayOnTheHost) {
  const std::string path = scratch_.path() + "/layers.gguf";
  GgufModel gguf(directory_);
  gguf.quantise(
      [&](const std::string& name) {
        if (name == "blk.1.ffn_down_exps.weight") return std::string_view("Q5_K");
        return name.find("_exps") != std::string::npos ? std::string_view("Q4_K") : std::string_view();
      },
      5);
  gguf.write(path);
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  EngineOptions alone = small_options();
  alone.math = Math::kF32;
  const Ran host = run(path, alone);
  for (const char* const cache : {"lru", "static-layers", "workload-ema", "static-random"}) {
    SCOPED_TRACE(cache);
    EngineOptions options = alone;
    options.device = "cuda";
    options.dense_on = DenseOn::kHost;
    options.device_slots = 2;
    options.placement = "device";
    options.device_cache = std::string(cache);
    options.prefetch = "all-next";
    Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 4, gpu_hooks());
    const std::vector<float> logits = prompt_logits(engine);
    EXPECT_TRUE(same_bits(logits, host.logits));
    const RunReport report = engine.report();
    const LackingExperts& lacking = report.plan.device->experts_lack;
    EXPECT_EQ(lacking.formats, "q5_k");
    EXPECT_EQ(lacking.layers, (std::vector<std::uint8_t>{0, 1, 0}));
    EXPECT_FALSE(report.device->takes_none());
    const experts::DeviceCounts& counts = report.decider.device()->counts(StepKind::kPrompt);
    EXPECT_GT(counts.assigned, 0u);
    EXPECT_LT(counts.assigned, counts.active);
    for (std::uint16_t expert = 0; expert < model.config.moe.experts; ++expert)
      EXPECT_FALSE(report.device->holds({1, expert}));
  }
}

std::string error_of_gguf(const std::string& path) {
  return sluice::testing::error_of([&] { run(path, small_options()); });
}

TEST_F(QuantisedGguf, WhatIsWrongIsNamed) {
  const std::string path = scratch_.path() + "/model.gguf";
  const auto broken = [&](const auto& change) {
    GgufModel gguf(directory_);
    change(gguf);
    gguf.write(path);
    return error_of_gguf(path);
  };
  const auto set = [](GgufModel& gguf, std::string_view key, store::GgufWritten value) {
    for (auto& [name, old] : gguf.keys())
      if (name == gguf.key(key) || name == key) {
        old = std::move(value);
        return;
      }
    gguf.keys().emplace_back(key, std::move(value));
  };
  EXPECT_EQ(broken([](GgufModel&) {}), "no error");
  EXPECT_THAT(broken([&](GgufModel& g) { g.tensors().erase("blk.1.attn_q.weight"); }),
              HasSubstr("blk.1.attn_q.weight: tensor is missing"));
  EXPECT_THAT(
      broken([&](GgufModel& g) { g.tensors()["blk.1.strange.weight"] = g.tensors()["output_norm.weight"]; }),
      HasSubstr("blk.1.strange.weight: tensor is not one of this architecture"));
  EXPECT_EQ(broken([&](GgufModel& g) { g.tensors()["v.patch.weight"] = g.tensors()["output_norm.weight"]; }),
            "no error");
  EXPECT_THAT(
      broken([&](GgufModel& g) { set(g, "general.architecture", std::string("bert")); }),
      HasSubstr("general.architecture: the key has a value that is not supported; expected one of qwen3moe"));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "expert_count", std::uint32_t{0}); }),
              HasSubstr("expected a mixture of experts"));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "block_count", 3.5f); }), HasSubstr("block_count"));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "block_count", std::uint32_t{4'000'000'000}); }),
              HasSubstr("too many layers"));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "block_count", std::uint32_t{4}); }), HasSubstr("blk.3."));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "embedding_length", std::uint32_t{128}); }),
              HasSubstr("has another shape than by the keys of the file"));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "qwen3moe.final_logit_softcapping", 30.0f); }),
              HasSubstr("final_logit_softcapping"));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "qwen3moe.rope.scaling.type", std::string("longrope")); }),
              HasSubstr("expected none, linear or yarn, found \"longrope\""));
  EXPECT_THAT(broken([&](GgufModel& g) { set(g, "qwen3moe.expert_gating_func", std::uint32_t{2}); }),
              HasSubstr("expert_gating_func"));
}

// A chat model ends at the end of its turn, too, which is not the token that its key names.
TEST_F(QuantisedGguf, AnAnswerEndsAtEveryTokenThatEndsOne) {
  GgufModel gguf(directory_);
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types(256, 1);
  for (std::size_t i = 0; i < types.size(); ++i) tokens.push_back("t" + std::to_string(i));
  tokens[3] = "<|endoftext|>";
  tokens[7] = "<|im_end|>";
  types[3] = types[7] = 3;
  std::erase_if(gguf.keys(), [](const auto& key) { return key.first == "tokenizer.ggml.model"; });
  gguf.keys().emplace_back("tokenizer.ggml.model", std::string("gpt2"));
  gguf.keys().emplace_back("tokenizer.ggml.pre", std::string("qwen2"));
  gguf.keys().emplace_back("tokenizer.ggml.tokens", tokens);
  gguf.keys().emplace_back("tokenizer.ggml.token_type", types);
  gguf.keys().emplace_back("tokenizer.ggml.merges", std::vector<std::string>());
  gguf.keys().emplace_back("tokenizer.ggml.eos_token_id", std::uint32_t{3});
  gguf.write(scratch_.path() + "/chat.gguf");
  const auto checkpoint = store::open_checkpoint(scratch_.path() + "/chat.gguf");
  EXPECT_EQ(model::describe_model(*checkpoint).config.eos, (std::vector<tokenizer::TokenId>{3, 7}));
}

TEST_F(QuantisedGguf, PartsMustBeThoseOfOneModel) {
  const GgufModel gguf(directory_);
  const std::string first = gguf.write_parts(scratch_.path() + "/m", 20);
  const std::string second = std::string(first).replace(first.find("00001"), 5, "00002");
  EXPECT_THAT(error_of_gguf(second), HasSubstr("name " + first + ": the others are found beside it"));
  const std::string other = scratch_.path() + "/other.gguf";
  std::filesystem::copy_file(first, other);
  EXPECT_THAT(error_of_gguf(other), HasSubstr("its name does not say which"));
  std::filesystem::rename(second, scratch_.path() + "/away");
  EXPECT_THAT(error_of_gguf(first), HasSubstr("a part of the model is missing"));
  std::filesystem::copy_file(first, second);
  EXPECT_THAT(error_of_gguf(first), HasSubstr("no part of this model"));
}

// A scale that is no number is found when the expert is read, with its place in the file.
TEST_F(QuantisedGguf, AScaleThatIsNoNumberIsRefusedWithItsPlace) {
  GgufModel gguf = mixed();
  const std::string path = scratch_.path() + "/damaged.gguf", name = "blk.0.ffn_up_exps.weight";
  gguf.tensors()[name].type = &model::testing::type_named("Q8_0");
  gguf.tensors()[name].bytes.assign(6 * 256 * 256 / 32 * 34, '\0');
  for (std::size_t block = 0; block < gguf.tensors()[name].bytes.size(); block += 34)
    gguf.tensors()[name].bytes[block + 1] = '\x7e';  // binary16 NaN
  gguf.write(path);
  EXPECT_THAT(error_of_gguf(path), AllOf(HasSubstr("no number"), HasSubstr(path + " at byte")));
}

}  // namespace
}  // namespace sluice::engine::gguf_test
