// Packed stores of models whose matrices are in blocks, and of GGUF files of words: the logits of the files
// as they are, bit for bit, at every budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "base/machine/thread_pool.h"
#include "engine/engine.h"
#include "engine/model_identity.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "fetch/memory/expert_store.h"
#include "model/gguf_fixture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "model/synth/synth.h"
#include "store/check/verify.h"
#include "store/pack/pack.h"
#include "store/pack/unpack.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::engine {
namespace {

using model::testing::GgufModel;
using ::testing::HasSubstr;

const std::vector<tokenizer::TokenId> kPrompt = {5, 17, 200, 33, 41, 8, 97, 150, 2, 61, 77, 120, 9};

EngineOptions packed_options() {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = Math::kF32;
  options.positions = 32;
  options.prefetch = "none";  // how many reads are ahead of demand is a matter of time
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

struct Ran {
  std::vector<float> logits;
  MemoryPlan memory;
  std::uint64_t reads = 0, identity = 0;
  model::ModelConfig config;
};
Ran run(const std::string& path, const EngineOptions& options) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 4);
  const auto sequence = engine.new_sequence();
  Ran ran;
  engine.prefill(*sequence, kPrompt,
                 {[](std::size_t) { return true; },
                  [&](std::size_t, std::span<const float> row) {
                    ran.logits.insert(ran.logits.end(), row.begin(), row.end());
                  }});
  ran.memory = engine.report().memory;
  ran.reads = engine.report().experts.counters().demand_reads;
  ran.identity = model_identity(engine);
  ran.config = model.config;
  return ran;
}

void expect_same_bits(const Ran& found, const Ran& expected) {
  ASSERT_EQ(found.logits.size(), expected.logits.size());
  EXPECT_EQ(std::memcmp(found.logits.data(), expected.logits.data(), found.logits.size() * sizeof(float)), 0);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_same_files(const std::string& back, const std::string& source,
                       const std::vector<std::string>& names) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(back)) files += entry.is_regular_file();
  EXPECT_EQ(files, names.size());
  for (const std::string& name : names)
    EXPECT_EQ(content_of(back + "/" + name), content_of(source + "/" + name)) << name;
}

class PackedBlocks : public ::testing::Test {
 protected:
  // Packs a source, checks the store, and runs both: with room for everything, and with room for few experts.
  void expect_same(const std::string& source, store::PackOptions options,
                   const std::vector<std::string>& names) {
    const std::string path = scratch_.path() + "/model.sluice", back = scratch_.path() + "/back";
    store::pack(source, path, model::pack_plan(*store::open_checkpoint(source)), options);
    const store::VerifyReport report = store::verify(path, {.depth = store::VerifyDepth::kFull});
    for (const store::VerifyError& error : report.errors) ADD_FAILURE() << error.file << " " << error.message;
    store::unpack(path, back, {});
    expect_same_files(
        back,
        std::filesystem::is_directory(source) ? source : std::filesystem::path(source).parent_path().string(),
        names);
    const Ran expected = run(source, packed_options()), whole = run(path, packed_options());
    expect_same_bits(whole, expected);
    EXPECT_EQ(whole.identity, expected.identity);
    EXPECT_EQ(whole.config.eos, expected.config.eos);
    EXPECT_EQ(whole.config.bos, expected.config.bos);
    for (const std::string cache : {"none", "lru"}) {
      EngineOptions tight = packed_options();
      tight.cache = cache;
      tight.chunk = 3;
      tight.memory = whole.memory.minimum + 512 * kKiB;  // the test's own heap grows meanwhile
      const Ran found = run(path, tight);
      expect_same_bits(found, expected);
      if (cache == "none") {
        EXPECT_GT(found.reads, whole.reads) << "some expert was read again";
      }
    }
    std::filesystem::remove_all(path);
    std::filesystem::remove_all(back);
  }
  std::string files() {
    std::filesystem::create_directories(scratch_.path() + "/files");
    return scratch_.path() + "/files/";
  }
  static store::PackOptions pack_options(const std::string& codec = "native") {
    store::PackOptions options;
    options.codec = codec;
    options.chunks = 3;
    options.threads = 2;
    options.keep_columns = true;
    options.least_split_dense = 0;
    return options;
  }
  const sluice::testing::ScratchDirectory scratch_;
};

class PackedGguf : public PackedBlocks, public ::testing::WithParamInterface<std::string> {
 protected:
  std::string directory() const { return sluice::testing::kGoldenModels + "/" + GetParam(); }
};

// Words, which a codec compresses, and the same file as it is.
TEST_P(PackedGguf, OfWordsHasTheBitsOfTheFile) {
  GgufModel(directory()).write(files() + "model.gguf");
  for (const std::string codec : {"native", "none", "zstd"})
    expect_same(files() + "model.gguf", pack_options(codec), {"model.gguf"});
}

TEST_P(PackedGguf, InPartsHasTheBitsOfTheParts) {
  const std::string first = GgufModel(directory()).write_parts(files() + "model", 9);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(files()))
    names.push_back(entry.path().filename().string());
  ASSERT_GT(names.size(), 2u);
  expect_same(first, pack_options(), names);
}

INSTANTIATE_TEST_SUITE_P(Models, PackedGguf,
                         ::testing::Values("qwen2_moe_a", "qwen3_moe_a", "olmoe_b", "mixtral_a", "deepseek_a",
                                           "deepseek_v2_a", "deepseek_v2_b"),
                         [](const auto& info) { return info.param; });

// Widths of 256, so that every type fits.
constexpr std::string_view kWide =
    R"({"model_type": "qwen3_moe", "vocab_size": 256, "hidden_size": 256, "head_dim": 32, "num_hidden_layers": 3,
  "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 256, "moe_intermediate_size": 256,
  "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": true, "rope_theta": 10000.0,
  "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2})";
constexpr std::string_view kWideMla =
    R"({"model_type": "deepseek_v2", "vocab_size": 256, "hidden_size": 256, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 256, "moe_intermediate_size": 256,
  "n_routed_experts": 6, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
  "moe_layer_freq": 1, "norm_topk_prob": false, "kv_lora_rank": 256, "q_lora_rank": null,
  "qk_nope_head_dim": 256, "qk_rope_head_dim": 32, "v_head_dim": 64, "rope_theta": 10000.0,
  "scoring_func": "softmax", "topk_method": "greedy", "n_group": 1, "topk_group": 1,
  "routed_scaling_factor": 1.0, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2})";
constexpr std::string_view kBlockTypes[] = {"Q8_0", "Q4_K", "Q6_K", "Q4_0",   "Q5_0",   "Q5_K", "Q3_K",
                                            "Q2_K", "Q4_1", "Q5_1", "IQ4_NL", "IQ4_XS", "MXFP4"};

class PackedTypes : public PackedBlocks {
 protected:
  GgufModel synthetic(std::string_view config) {
    const std::string directory = scratch_.path() + "/directory";
    std::filesystem::remove_all(directory);
    std::ofstream(scratch_.path() + "/config.json") << config;
    ThreadPool threads(2);
    model::write_synth(model::plan_synth(scratch_.path() + "/config.json", {}), directory, threads,
                       [](Bytes) { return true; });
    return GgufModel(directory);
  }
  static bool is_matrix(const std::string& name) {
    return name.find("norm") == std::string::npos && name.find("gate_inp") == std::string::npos;
  }
};

// Every matrix in a type, in turn: those of an expert differ, and those of layers.
TEST_F(PackedTypes, MixedTypesHaveTheBitsOfTheFile) {
  for (const std::string_view config : {kWide, kWideMla}) {
    GgufModel gguf = synthetic(config);
    std::size_t next = 0;
    gguf.quantise(
        [&](const std::string& name) {
          return is_matrix(name) ? kBlockTypes[next++ % std::size(kBlockTypes)] : std::string_view();
        },
        7);
    gguf.write(files() + "mixed.gguf");
    expect_same(files() + "mixed.gguf", pack_options(), {"mixed.gguf"});
  }
}

// Words beside blocks: in other tensors, and within an expert.
TEST_F(PackedTypes, BlocksBesideCompressedWordsHaveTheBitsOfTheFile) {
  for (const bool within : {false, true}) {
    GgufModel gguf = synthetic(kWide);
    gguf.quantise(
        [&](const std::string& name) {
          const bool expert = name.find("_exps") != std::string::npos;
          return expert && !(within && name.find("down") != std::string::npos) ? std::string_view("Q4_K")
                                                                               : std::string_view();
        },
        8);
    gguf.write(files() + "beside.gguf");
    for (const std::string codec : {"native", "zstd"})
      expect_same(files() + "beside.gguf", pack_options(codec), {"beside.gguf"});
  }
}

// Compiled into the store, and read from the keys where it is not.
TEST_F(PackedTypes, TheTokenizerAndTheEndsAreThoseOfTheFile) {
  GgufModel gguf = synthetic(kWide);
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types(256, 1);
  for (std::size_t i = 0; i < types.size(); ++i) tokens.push_back("t" + std::to_string(i));
  tokens[3] = "<|endoftext|>";
  tokens[7] = "<|im_end|>";
  tokens[10] = "a";
  types[3] = types[7] = 3;
  std::erase_if(gguf.keys(), [](const auto& key) { return key.first == "tokenizer.ggml.model"; });
  gguf.keys().emplace_back("tokenizer.ggml.model", std::string("gpt2"));
  gguf.keys().emplace_back("tokenizer.ggml.pre", std::string("qwen2"));
  gguf.keys().emplace_back("tokenizer.ggml.tokens", tokens);
  gguf.keys().emplace_back("tokenizer.ggml.token_type", types);
  gguf.keys().emplace_back("tokenizer.ggml.merges", std::vector<std::string>());
  gguf.keys().emplace_back("tokenizer.ggml.eos_token_id", std::uint32_t{3});
  gguf.write(files() + "chat.gguf");
  const std::string store = scratch_.path() + "/chat.sluice";
  store::PackOptions options = pack_options();
  options.add_sidecars = [](const std::string& directory) {
    EXPECT_TRUE(tokenizer::compile_tokenizer_of(*store::open_checkpoint(directory)));
  };
  store::pack(files() + "chat.gguf", store, model::pack_plan(*store::open_checkpoint(files() + "chat.gguf")),
              options);
  for (const bool compiled : {true, false}) {
    if (!compiled) std::filesystem::remove_all(store + "/sidecar");
    const auto checkpoint = store::open_checkpoint(store);
    EXPECT_EQ(model::describe_model(*checkpoint).config.eos, (std::vector<tokenizer::TokenId>{3, 7}));
    std::string warning;
    const auto tokenizer = tokenizer::load_tokenizer_of(*checkpoint, &warning);
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(warning, "");
    EXPECT_EQ(tokenizer->encode("a<|im_end|>aa", tokenizer::AddSpecial::kYes),
              (std::vector<tokenizer::TokenId>{10, 7, 10, 10}));
  }
}

TEST_F(PackedBlocks, GptOssHasTheBitsOfTheDirectory) {
  for (const std::string name : {"gpt_oss_a", "gpt_oss_b"}) {
    const std::string directory = sluice::testing::kGoldenModels + "/" + name;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      names.push_back(entry.path().filename().string());
    for (const std::string codec : {"native", "none"}) {
      SCOPED_TRACE(name + " " + codec);
      expect_same(directory, pack_options(codec), names);
    }
  }
}

}  // namespace
}  // namespace sluice::engine
