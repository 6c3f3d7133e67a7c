#include "model/synth/synth.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "base/error.h"
#include "base/files/file.h"
#include "base/float16.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "store/checkpoint.h"
#include "store/source/open_checkpoint.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::string_view kConfig = R"({
  "model_type": "qwen2_moe", "hidden_act": "silu", "vocab_size": 300, "hidden_size": 64, "num_hidden_layers": 3,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "moe_intermediate_size": 48,
  "shared_expert_intermediate_size": 80, "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 1,
  "norm_topk_prob": false, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "max_position_embeddings": 512,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16"
})";

class SynthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/sluice_synth_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    write_config(kConfig);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write_config(std::string_view text) { std::ofstream(path("config.json"), std::ios::trunc) << text; }
  SynthPlan plan(const SynthOptions& options = {}) const { return plan_synth(path("config.json"), options); }
  void write(const SynthPlan& plan, const std::string& name, unsigned threads = 1) const {
    ThreadPool pool(threads);
    write_synth(plan, path(name), pool, [](Bytes) { return true; });
  }
  // The words of every tensor, read back like any checkpoint.
  static std::map<std::string, std::vector<std::uint16_t>> read(const std::string& directory) {
    const auto checkpoint = store::open_checkpoint(directory);
    std::map<std::string, std::vector<std::uint16_t>> words;
    for (const store::TensorInfo& info : checkpoint->tensors()) {
      std::uint64_t elements = 1;
      for (std::uint64_t dim : info.shape) elements *= dim;
      const store::StoredPiece piece = checkpoint->locate({info.name, 0, elements});
      std::vector<std::uint16_t>& out = words[info.name];
      out.resize(elements);
      InputFile::open(checkpoint->weight_files()[piece.first().file])
          .read_at(piece.first().offset, std::as_writable_bytes(std::span(out)));
    }
    return words;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }

  std::string root_;
};

TEST_F(SynthTest, IsACompleteModel) {
  const SynthPlan synth = plan({.shard_bytes = 100'000});
  write(synth, "model", 2);
  const Model model = describe_model(*store::open_checkpoint(path("model")));
  EXPECT_EQ(model.experts.size(), 24u);
  EXPECT_TRUE(model.ignored.empty());
  EXPECT_EQ(read_text_file(path("model/config.json"), kMiB), kConfig);  // unchanged
  EXPECT_GT(synth.shards.size(), 3u);
  Bytes total = 0;
  for (const SynthShard& shard : synth.shards) {
    EXPECT_TRUE(shard.bytes <= 100'000 || shard.count == 1);
    EXPECT_GT(fs::file_size(path("model/" + shard.file)), shard.bytes);
    total += shard.bytes;
  }
  EXPECT_EQ(total, synth.bytes);
  const Json index = read_json_file(path("model/model.safetensors.index.json"));
  EXPECT_EQ(index.at("metadata").at("total_size"), synth.bytes);
  EXPECT_EQ(index.at("weight_map").size(), synth.tensors.size());
  EXPECT_EQ(entries(), 2u);  // config.json and the model: nothing temporary
}

TEST_F(SynthTest, BytesDependOnTheSeedAlone) {
  write(plan(), "a", 1);
  write(plan(), "b", 3);
  write(plan({.shard_bytes = 50'000}), "c", 2);
  write(plan({.seed = 1}), "d", 2);
  const auto a = read(path("a"));
  EXPECT_EQ(a, read(path("b")));
  EXPECT_EQ(a, read(path("c")));
  const auto d = read(path("d"));
  for (const auto& [name, words] : a) EXPECT_NE(words, d.at(name)) << name;
}

TEST_F(SynthTest, FewerLayersAndExpertsKeepTheRest) {
  write(plan(), "whole");
  write(plan({.layers = 2, .experts = 4}), "cut");
  const auto whole = read(path("whole")), cut = read(path("cut"));
  EXPECT_LT(cut.size(), whole.size());
  for (const auto& [name, words] : cut) {
    if (name.find("mlp.gate.weight") == std::string::npos) {
      EXPECT_EQ(words, whole.at(name)) << name;
    }
  }
  const Json config = read_json_file(path("cut/config.json"));
  EXPECT_EQ(config.at("num_hidden_layers"), 2);
  EXPECT_EQ(config.at("num_experts"), 4);
  EXPECT_EQ(describe_model(*store::open_checkpoint(path("cut"))).experts.size(), 8u);
}

TEST_F(SynthTest, EmbeddingScaleChangesEmbeddingsAlone) {
  write(plan(), "one");
  write(plan({.embedding_scale = 64}), "sixty-four");
  const auto one = read(path("one")), scaled = read(path("sixty-four"));
  for (const auto& [name, words] : one) {
    const bool embedding = name == "model.embed_tokens.weight";
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(bf16_to_float(scaled.at(name)[i]), bf16_to_float(words[i]) * (embedding ? 64 : 1)) << name;
  }
}

// Where the head is also the embedding, a common part would choose the same token each time.
TEST_F(SynthTest, TiedEmbeddingsHaveNoPartInCommon) {
  Json json = Json::parse(kConfig);
  json["tie_word_embeddings"] = true;
  write_config(json.dump());
  EXPECT_NO_THROW(plan());
  try {
    plan({.embedding_common = 0.1});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(with_names(error.where()), "--embedding-common");
  }
}

// Rows of the embedding correlate as the share says and keep their size, and no other tensor changes.
TEST_F(SynthTest, EmbeddingsHaveAPartInCommon) {
  constexpr double kShare = 0.4;
  write(plan(), "none");
  write(plan({.embedding_common = kShare}), "some");
  const auto none = read(path("none")), some = read(path("some"));
  for (const auto& [name, words] : none) {
    if (name == "model.embed_tokens.weight") continue;
    EXPECT_EQ(some.at(name), words) << name;
  }
  const auto rows_of = [](const std::vector<std::uint16_t>& words) {
    std::vector<std::vector<double>> rows(300, std::vector<double>(64));
    for (std::size_t i = 0; i < words.size(); ++i) rows[i / 64][i % 64] = bf16_to_float(words[i]);
    return rows;
  };
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  const auto mean_cosine = [&](const std::vector<std::vector<double>>& rows) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i)
      sum += dot(rows[i], rows[i + 1]) / std::sqrt(dot(rows[i], rows[i]) * dot(rows[i + 1], rows[i + 1]));
    return sum / static_cast<double>(rows.size() - 1);
  };
  const auto size = [&](const std::vector<std::vector<double>>& rows) {
    double sum = 0;
    for (const auto& row : rows) sum += dot(row, row);
    return std::sqrt(sum);
  };
  const auto alone = rows_of(none.at("model.embed_tokens.weight"));
  const auto alike = rows_of(some.at("model.embed_tokens.weight"));
  EXPECT_NEAR(mean_cosine(alone), 0, 0.05);
  EXPECT_NEAR(mean_cosine(alike), kShare, 0.1);
  EXPECT_NEAR(size(alike) / size(alone), 1, 0.15);
}

TEST_F(SynthTest, ConfigTellsTheElementType) {
  std::string text(kConfig);
  text.replace(text.find("bfloat16"), 8, "float32");
  write_config(text);
  EXPECT_EQ(Json::parse(plan().config_json).at("torch_dtype"), "bfloat16");
}

TEST_F(SynthTest, ImpossibleConfigsAreErrors) {
  EXPECT_THROW(plan({.experts = 1}), Error);  // fewer than are chosen per token
  EXPECT_THROW(plan({.layers = 0}), Error);
  write_config("[]");
  EXPECT_THROW(plan({.layers = 1}), Error);
  write_config(R"({"model_type": "none"})");
  EXPECT_THROW(plan(), Error);
  EXPECT_THROW(plan_synth(path("absent.json"), {}), Error);
}

// Exponents like those of trained weights, and no two rows alike.
TEST_F(SynthTest, StatisticsOfTrainedWeights) {
  std::string text(kConfig);
  text.replace(text.find("\"moe_intermediate_size\": 48"), 27, "\"moe_intermediate_size\": 4096");
  write_config(text);
  write(plan({.layers = 1}), "model");
  std::map<unsigned, double> exponents;
  double count = 0, sum = 0, squares = 0, outliers = 0;
  for (const auto& [name, words] : read(path("model"))) {
    if (name.find("mlp.experts.") == std::string::npos) {
      if (name.find("norm") != std::string::npos) {
        for (std::uint16_t word : words) EXPECT_NEAR(bf16_to_float(word), 1.0f, 0.6f) << name;
      }
      continue;
    }
    for (std::uint16_t word : words) {
      ++exponents[word >> 7 & 0xff];
      const double value = bf16_to_float(word);
      ++count;
      sum += value;
      squares += value * value;
      outliers += std::fabs(value) > 0.15;
    }
  }
  double entropy = 0;
  for (const auto& [exponent, n] : exponents) entropy -= n / count * std::log2(n / count);
  EXPECT_NEAR(entropy, 2.616, 0.03);  // for the same mixture, from another generator
  EXPECT_NEAR(sum / count, 0.0, 1e-4);
  EXPECT_NEAR(std::sqrt(squares / count), 0.022, 0.001);
  EXPECT_GT(outliers / count, 1e-4);
}

// Experts in MXFP4: a model that opens, whose numbers have the deviation of other weights.
TEST_F(SynthTest, WritesTheFormatThatTheConfigNames) {
  write_config(R"({"model_type": "gpt_oss", "hidden_act": "silu", "vocab_size": 300, "hidden_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 416, "num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 8,
    "quantization_config": {"quant_method": "mxfp4"}, "torch_dtype": "bfloat16"})");
  const SynthPlan synth = plan({.shard_bytes = 200'000});
  write(synth, "model", 2);
  const auto checkpoint = store::open_checkpoint(path("model"));
  const Model model = describe_model(*checkpoint);
  EXPECT_EQ(model.experts.size(), 12u);
  constexpr double kFp4[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  double sum = 0, squares = 0, count = 0;
  for (const ExpertPieces& expert : model.experts)
    for (const store::Piece& piece : expert.all()) {
      const store::StoredPiece stored = checkpoint->locate(piece);
      ASSERT_EQ(stored.format->name, "mxfp4_pair");
      std::vector<std::vector<std::byte>> planes;  // codes and exponents
      for (const store::Extent& extent : {stored.planes[0].extent, stored.planes[1].extent}) {
        planes.emplace_back(extent.length);
        InputFile::open(checkpoint->weight_files()[extent.file]).read_at(extent.offset, planes.back());
      }
      for (std::size_t i = 0; i < stored.elements; ++i) {
        const unsigned code = std::to_integer<unsigned>(planes[0][i / 2]) >> i % 2 * 4;
        const int exponent = std::to_integer<int>(planes[1][i / 32]);
        ASSERT_LT(exponent, 255);
        const double value = std::ldexp(kFp4[code & 7], exponent - 127);
        sum += (code & 8) != 0 ? -value : value;
        squares += value * value;
        ++count;
      }
    }
  EXPECT_EQ(count, 12.0 * 3 * 96 * 416);
  EXPECT_NEAR(sum / count, 0.0, 2e-4);
  EXPECT_NEAR(std::sqrt(squares / count), 0.022, 0.004);
  write(synth, "again", 1);
  for (const SynthShard& shard : synth.shards)
    EXPECT_EQ(read_text_file(path("model/" + shard.file), kMiB),
              read_text_file(path("again/" + shard.file), kMiB));
}

TEST_F(SynthTest, WritesATokenizerBesideTheWeights) {
  SynthPlan with = plan();
  with.tokenizer = {{"additional_chat_templates/rag.jinja", "{{ documents }}"}, {"tokenizer.json", "{}"}};
  write(with, "with");
  for (const tokenizer::TokenizerFile& file : with.tokenizer)
    EXPECT_EQ(read_text_file(path("with/" + file.name), kMiB), file.content);
  write(plan(), "without");
  EXPECT_EQ(read(path("with")), read(path("without")));
  EXPECT_FALSE(fs::exists(path("without/tokenizer.json")));
}

TEST_F(SynthTest, RefusesToOverwrite) {
  fs::create_directory(path("there"));
  EXPECT_THROW(write(plan(), "there"), Error);
  EXPECT_TRUE(fs::is_empty(path("there")));
  fs::create_symlink("nowhere", path("link"));
  EXPECT_THROW(write(plan(), "link"), Error);
  EXPECT_EQ(entries(), 3u);
}

TEST_F(SynthTest, ChecksFreeSpaceFirst) {
  SynthPlan huge = plan();
  huge.bytes = Bytes{1} << 60;
  try {
    write(huge, "model");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_THAT(error.what(), HasSubstr("not enough free disk space"));
  }
  EXPECT_EQ(entries(), 1u);
}

// What is asked for is what the files take, and no more: on a disk of just that size the model is written.
TEST_F(SynthTest, AsksForTheRoomThatItsFilesTake) {
  const std::string disk = path("disk");
  fs::create_directory(disk);
  const auto mount_with = [&](Bytes bytes, unsigned long flags) {
    return ::mount("none", disk.c_str(), "tmpfs", flags, fmt::format("size={}", bytes).c_str()) == 0;
  };
  if (!mount_with(kBlockBytes, 0)) GTEST_SKIP() << "may not mount a small file system here";
  const std::unique_ptr<const char, int (*)(const char*)> unmount(
      disk.c_str(), [](const char* path) { return ::umount2(path, MNT_DETACH); });
  const SynthPlan small = plan();
  const auto fits = [&](Bytes bytes) {
    if (!mount_with(bytes, MS_REMOUNT)) throw std::runtime_error("remount");
    try {
      write(small, "disk/model");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("not enough free disk space"));
      return false;
    }
    fs::remove_all(disk + "/model");
    return true;
  };
  Bytes needed = round_down(small.bytes, kBlockBytes);
  while (!fits(needed)) {
    needed += kBlockBytes;
    ASSERT_LE(needed, small.bytes + 16 * kBlockBytes) << "asks for more than its three files take";
  }
  EXPECT_GT(needed, small.bytes);
}

TEST_F(SynthTest, InterruptionLeavesNothing) {
  write_config([] {
    std::string text(kConfig);
    return text.replace(text.find("\"vocab_size\": 300"), 17, "\"vocab_size\": 300000");
  }());
  ThreadPool pool(2);
  int calls = 0;
  try {
    write_synth(plan(), path("model"), pool, [&](Bytes) { return ++calls < 2; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInterrupted);
  }
  EXPECT_EQ(entries(), 1u);
}

TEST_F(SynthTest, MissingParentIsAnError) {
  EXPECT_THROW(write(plan(), "no/such/model"), Error);
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace sluice::model
