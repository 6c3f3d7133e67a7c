#include "model/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/json/json.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kData = SLUICE_SOURCE_DIR "/tests/data/configs/";

const std::vector<std::string> kModels = {"qwen1.5-moe-a2.7b", "qwen2-57b-a14b",   "qwen3-30b-a3b",
                                          "deepseek-moe-16b",  "deepseek-v2-lite", "mixtral-8x7b",
                                          "olmoe-1b-7b",       "xverse-moe-a4.2b", "switch-base-128",
                                          "switch-large-128",  "gpt-oss-20b",      "gpt-oss-120b"};

Json published(const std::string& name) { return read_json_file(kData + name + ".config.json"); }

std::vector<TensorSpec> table_of(const std::string& name) {
  return tensor_table(parse_config(published(name), "config.json"));
}

Json read_zst(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(file)), {});
  std::string text(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  text.resize(ZSTD_decompress(text.data(), text.size(), packed.data(), packed.size()));
  return parse_json(text, path);
}

std::uint64_t elements(const TensorSpec& spec) {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : spec.shape) product *= dim;
  return product;
}

std::uint64_t parameters(const std::string& name) {
  std::uint64_t sum = 0;
  for (const TensorSpec& spec : table_of(name)) sum += elements(spec);
  return sum;
}

// A config.json in its own directory and a list of tensors; no bytes.
class FakeCheckpoint : public store::Checkpoint {
 public:
  FakeCheckpoint(const Json& config, const std::vector<TensorSpec>& specs, const Json& generation = nullptr) {
    static int count = 0;
    path_ = ::testing::TempDir() + "sluice_architecture_" + std::to_string(getpid()) + "_" +
            std::to_string(count++);
    std::filesystem::create_directories(path_);
    if (!config.is_null()) std::ofstream(path_ + "/config.json") << config.dump();
    if (!generation.is_null()) std::ofstream(path_ + "/generation_config.json") << generation.dump();
    for (const TensorSpec& spec : specs) tensors_.push_back({spec.name, DType::kBF16, spec.shape});
    sort();
  }
  ~FakeCheckpoint() override { std::filesystem::remove_all(path_); }

  std::vector<store::Piece> pieces_of(std::string_view) const override { return {}; }
  store::TensorInfo& at(const std::string& name) {
    for (store::TensorInfo& tensor : tensors_) {
      if (tensor.name == name) return tensor;
    }
    throw std::out_of_range(name);
  }
  void add(const std::string& name, std::vector<std::uint64_t> shape) {
    tensors_.push_back({name, DType::kBF16, std::move(shape)});
    sort();
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const store::TensorInfo& tensor) { return tensor.name == name; });
  }
  void rename(const std::string& from, const std::string& to) {
    at(from).name = to;
    sort();
  }
  // One 3-D tensor for each projection of a layer instead of one tensor for each expert.
  void stack(const std::string& prefix, std::uint64_t experts, std::uint64_t width, std::uint64_t hidden,
             const std::string& stacked_prefix) {
    std::erase_if(tensors_,
                  [&](const store::TensorInfo& tensor) { return tensor.name.starts_with(prefix + "."); });
    add(stacked_prefix + ".gate_up_proj", {experts, 2 * width, hidden});
    add(stacked_prefix + ".down_proj", {experts, hidden, width});
  }

  const std::string& path() const override { return path_; }
  bool packed() const override { return false; }
  const std::vector<std::string>& weight_files() const override { return files_; }
  const std::vector<store::TensorInfo>& tensors() const override { return tensors_; }
  const store::TensorInfo* find(std::string_view name) const override {
    const auto found = std::ranges::find(tensors_, name, &store::TensorInfo::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  store::StoredPiece locate(const store::Piece&) const override { return {}; }
  std::string codec() const override { return "none"; }
  std::optional<std::string> find_file(std::string_view relative) const override {
    const std::string path = path_ + "/" + std::string(relative);
    return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
  }
  std::string files_directory() const override { return path_; }
  void check_files() const override {}

 private:
  void sort() { std::ranges::sort(tensors_, {}, &store::TensorInfo::name); }

  std::string path_;
  std::vector<std::string> files_;
  std::vector<store::TensorInfo> tensors_;
};

// A small config of each architecture.
Json small(const std::string& name) {
  Json json = published(name);
  json["vocab_size"] = 50;
  if (json.contains("num_hidden_layers")) json["num_hidden_layers"] = 3;
  if (json["num_experts_per_tok"].is_null()) json.erase("num_experts_per_tok");
  for (const char* const key : {"num_experts", "n_routed_experts", "num_local_experts"}) {
    if (json.contains(key)) json[key] = 8;
  }
  for (const char* const key : {"num_experts_per_tok", "experts_per_token"}) {
    if (json.contains(key)) json[key] = 2;
  }
  if (json.contains("layer_types")) {
    const Json& types = json["layer_types"];
    json["layer_types"] = Json::array({types[0], types[1], types[2]});
  }
  return json;
}

FakeCheckpoint checkpoint_of(const Json& json) {
  return FakeCheckpoint(json, tensor_table(parse_config(json, "config.json")));
}

void expect_error(const FakeCheckpoint& checkpoint, ErrorKind kind, const std::string& tensor,
                  const std::string& expected, const std::string& found) {
  try {
    describe_model(checkpoint);
    ADD_FAILURE() << "no error for " << tensor;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(error.where(), checkpoint.path() + ": " + tensor) << error.what();
    EXPECT_THAT(error.expected_text(), HasSubstr(expected)) << error.what();
    EXPECT_THAT(error.found_text(), HasSubstr(found)) << error.what();
  }
}

TEST(Architecture, RegistryNamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Architecture& architecture : architectures()) {
    EXPECT_TRUE(names.insert(architecture.model_type).second) << architecture.model_type;
    EXPECT_EQ(&find_architecture(architecture.model_type, "config.json"), &architecture);
    EXPECT_FALSE(architecture.source.empty());
  }
}

TEST(Architecture, RoleNamesAreUnique) {
  std::set<std::string_view> names;
  for (int role = 0; role <= static_cast<int>(Role::kCrossO); ++role) {
    EXPECT_TRUE(names.insert(role_name(static_cast<Role>(role))).second);
  }
}

TEST(Architecture, TableHasNoNameTwice) {
  for (const std::string& model : kModels) {
    std::set<std::string> names;
    for (const TensorSpec& spec : table_of(model)) EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
  }
}

// The weight maps published with the models are an oracle outside this code.
TEST(Architecture, TableIsThePublishedWeightMap) {
  for (const std::string model : {"deepseek-v2-lite", "qwen1.5-moe-a2.7b"}) {
    SCOPED_TRACE(model);
    const Json index = read_zst(kData + model + ".model.safetensors.index.json.zst");
    std::set<std::string> theirs, ours;
    for (const auto& [name, file] : index["weight_map"].items()) theirs.insert(name);
    for (const TensorSpec& spec : table_of(model)) ours.insert(spec.name);
    EXPECT_EQ(ours, theirs);
  }
}

// Switch Transformers' weight map also names the copies of `shared` in exports of tied models.
TEST(Architecture, TableIsThePublishedWeightMapOfAnEncoderDecoder) {
  const Json index = read_zst(kData + "switch-large-128.model.safetensors.index.json.zst");
  std::set<std::string> theirs, ours;
  for (const auto& [name, file] : index["weight_map"].items()) theirs.insert(name);
  for (const TensorSpec& spec : table_of("switch-large-128")) ours.insert(spec.name);
  for (const char* const copy :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}) {
    EXPECT_TRUE(ours.insert(copy).second);
    const ModelConfig config = parse_config(published("switch-large-128"), "config.json");
    EXPECT_TRUE(find_architecture("switch_transformers", "").carries(config, copy));
  }
  EXPECT_EQ(ours, theirs);
}

TEST(Architecture, PublishedTotalSizeIsTwoBytesForEachParameter) {
  const Json index = read_zst(kData + "deepseek-v2-lite.model.safetensors.index.json.zst");
  EXPECT_EQ(2 * parameters("deepseek-v2-lite"), index["metadata"]["total_size"].get<std::uint64_t>());
}

TEST(Architecture, ParameterCountsAreThePublishedOnes) {
  const auto billions = [](const std::string& model) {
    std::ostringstream text;
    text.precision(1);
    text << std::fixed << static_cast<double>(parameters(model)) * 1e-9;
    return text.str();
  };
  EXPECT_EQ(billions("qwen1.5-moe-a2.7b"), "14.3");
  EXPECT_EQ(billions("qwen2-57b-a14b"), "57.4");
  EXPECT_EQ(billions("qwen3-30b-a3b"), "30.5");
  EXPECT_EQ(billions("deepseek-moe-16b"), "16.4");
  EXPECT_EQ(billions("deepseek-v2-lite"), "15.7");
  EXPECT_EQ(billions("mixtral-8x7b"), "46.7");
  EXPECT_EQ(billions("olmoe-1b-7b"), "6.9");
  EXPECT_EQ(billions("xverse-moe-a4.2b"), "25.8");
  EXPECT_EQ(billions("switch-base-128"), "7.4");
  EXPECT_EQ(billions("gpt-oss-20b"), "20.9");
  EXPECT_EQ(billions("gpt-oss-120b"), "116.8");
  const std::uint64_t copies =
      3 * elements(table_of("switch-large-128").front());  // for `shared`, which is also published
  EXPECT_EQ(2 * (parameters("switch-large-128") + copies),
            read_zst(kData + "switch-large-128.model.safetensors.index.json.zst")["metadata"]["total_size"]
                .get<std::uint64_t>());
}

TEST(Architecture, ShapesOfMla) {
  Json json = published("deepseek-v2-lite");
  json["q_lora_rank"] = 768;
  std::map<std::string, std::vector<std::uint64_t>> shapes;
  for (const TensorSpec& spec : tensor_table(parse_config(json, "c"))) shapes[spec.name] = spec.shape;
  const std::string attention = "model.layers.3.self_attn.";
  EXPECT_THAT(shapes.at(attention + "q_a_proj.weight"), ElementsAre(768, 2048));
  EXPECT_THAT(shapes.at(attention + "q_a_layernorm.weight"), ElementsAre(768));
  EXPECT_THAT(shapes.at(attention + "q_b_proj.weight"), ElementsAre(16 * 192, 768));
  EXPECT_THAT(shapes.at(attention + "kv_a_proj_with_mqa.weight"), ElementsAre(576, 2048));
  EXPECT_THAT(shapes.at(attention + "kv_b_proj.weight"), ElementsAre(16 * 256, 512));
  EXPECT_THAT(shapes.at(attention + "o_proj.weight"), ElementsAre(2048, 2048));
  EXPECT_FALSE(shapes.contains(attention + "q_proj.weight"));
}

TEST(Architecture, TableRefusesShapesThatOverflow) {
  ModelConfig config = parse_config(small("mixtral-8x7b"), "config.json");
  config.hidden = config.vocab = UINT32_MAX;
  EXPECT_THROW(tensor_table(config), Error);
  config.hidden = 0;
  EXPECT_THROW(tensor_table(config), Error);
}

TEST(DescribeModel, AcceptsEveryArchitecture) {
  for (const std::string& name : kModels) {
    SCOPED_TRACE(name);
    const Json json = small(name);
    const FakeCheckpoint checkpoint = checkpoint_of(json);
    const Model model = describe_model(checkpoint);
    const ModelConfig& config = model.config;
    EXPECT_THAT(model.ignored, IsEmpty());
    EXPECT_EQ(model.dense.size() + config.expert_matrices() * model.experts.size(),
              checkpoint.tensors().size());
    ASSERT_EQ(model.experts.size(), std::size_t{config.sparse_layers()} * config.moe.experts);
    for (std::size_t i = 0; i < model.experts.size(); ++i) {
      const ExpertPieces& expert = model.experts[i];
      EXPECT_EQ(expert.layer, i / config.moe.experts);
      EXPECT_EQ(expert.index, i % config.moe.experts);
      EXPECT_EQ(expert.all().size(), config.expert_matrices());
      std::uint64_t elements = 0;
      for (const store::Piece& piece : expert.all()) {
        EXPECT_EQ(piece.first_element, 0u);
        elements += piece.elements;
      }
      EXPECT_EQ(elements, config.expert_elements());
      EXPECT_THAT(checkpoint.find(expert.up.tensor)->shape,
                  ElementsAre(config.moe.width * config.activation.up_rows(), config.hidden));
      if (config.expert_matrices() == 3) {
        EXPECT_EQ(checkpoint.find(expert.gate.tensor)->shape, checkpoint.find(expert.up.tensor)->shape);
      }
      EXPECT_THAT(checkpoint.find(expert.down.tensor)->shape, ElementsAre(config.hidden, config.moe.width));
    }
    EXPECT_NE(model.find(Role::kEmbedding), nullptr);
    EXPECT_EQ(model.find(Role::kHead)->name, config.tied_head ? "shared.weight" : "lm_head.weight");
    EXPECT_EQ(model.find(Role::kQ, 99), nullptr);
    for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
      EXPECT_EQ(model.find(Role::kRouter, static_cast<std::int32_t>(layer)) != nullptr, config.sparse[layer]);
    }
  }
}

TEST(DescribeModel, MixtralNamesItsProjectionsByNumber) {
  const Model model = describe_model(checkpoint_of(small("mixtral-8x7b")));
  EXPECT_EQ(model.experts[0].gate.tensor, "model.layers.0.block_sparse_moe.experts.0.w1.weight");
  EXPECT_EQ(model.experts[0].up.tensor, "model.layers.0.block_sparse_moe.experts.0.w3.weight");
  EXPECT_EQ(model.experts[0].down.tensor, "model.layers.0.block_sparse_moe.experts.0.w2.weight");
}

TEST(DescribeModel, StackedExpertsAreSlices) {
  FakeCheckpoint checkpoint = checkpoint_of(small("qwen3-30b-a3b"));
  checkpoint.stack("model.layers.1.mlp.experts", 8, 768, 2048, "model.layers.1.mlp.experts");
  const Model model = describe_model(checkpoint);
  ASSERT_EQ(model.experts.size(), 24u);
  const ExpertPieces& expert = model.experts[8 + 5];
  EXPECT_EQ(expert.layer, 1u);
  EXPECT_EQ(expert.index, 5u);
  const std::uint64_t matrix = 768 * 2048;
  EXPECT_EQ(expert.gate.tensor, "model.layers.1.mlp.experts.gate_up_proj");
  EXPECT_EQ(expert.gate.first_element, 10 * matrix);
  EXPECT_EQ(expert.gate.elements, matrix);
  EXPECT_EQ(expert.up.tensor, expert.gate.tensor);
  EXPECT_EQ(expert.up.first_element, 11 * matrix);
  EXPECT_EQ(expert.down.tensor, "model.layers.1.mlp.experts.down_proj");
  EXPECT_EQ(expert.down.first_element, 5 * matrix);
  EXPECT_EQ(model.experts[0].gate.tensor, "model.layers.0.mlp.experts.0.gate_proj.weight");
}

// Every other row of an expert's first matrix is a gate's, so it is one piece.
TEST(DescribeModel, StackedExpertsInPairsHaveTwoPieces) {
  const Json json = small("gpt-oss-20b");
  FakeCheckpoint checkpoint = checkpoint_of(json);
  const std::string prefix = "model.layers.1.mlp.experts";
  for (int expert = 0; expert < 8; ++expert)
    for (const char* const matrix : {"gate_up_proj", "down_proj"})
      checkpoint.remove(prefix + "." + std::to_string(expert) + "." + matrix + ".weight");
  checkpoint.add(prefix + ".gate_up_proj", {8, 5760, 2880});
  checkpoint.add(prefix + ".down_proj", {8, 2880, 2880});
  // Words in such a stack would be transposed.
  expect_error(checkpoint, ErrorKind::kUnsupported, prefix + ".gate_up_proj", prefix + ".gate_up_proj_blocks",
               "BF16");
  for (const char* const matrix : {".gate_up_proj", ".down_proj"}) {
    checkpoint.at(prefix + matrix).dtype = DType::kF32;
    checkpoint.at(prefix + matrix).format = &codec::kFormatMxfp4Pair;
  }
  const Model model = describe_model(checkpoint);
  ASSERT_EQ(model.experts.size(), 24u);
  const ExpertPieces& expert = model.experts[8 + 5];
  const std::uint64_t matrix = std::uint64_t{2880} * 2880;
  EXPECT_EQ(expert.gate.elements, 0u);
  EXPECT_EQ(expert.up.tensor, prefix + ".gate_up_proj");
  EXPECT_EQ(expert.up.first_element, 10 * matrix);
  EXPECT_EQ(expert.up.elements, 2 * matrix);
  EXPECT_EQ(expert.down.tensor, prefix + ".down_proj");
  EXPECT_EQ(expert.down.first_element, 5 * matrix);
  EXPECT_EQ(expert.down.elements, matrix);
}

TEST(DescribeModel, StackedMixtralGoesByEitherPrefix) {
  for (const std::string prefix : {"model.layers.0.block_sparse_moe.experts", "model.layers.0.mlp.experts"}) {
    FakeCheckpoint checkpoint = checkpoint_of(small("mixtral-8x7b"));
    checkpoint.stack("model.layers.0.block_sparse_moe.experts", 8, 14336, 4096, prefix);
    EXPECT_EQ(describe_model(checkpoint).experts[7].down.tensor, prefix + ".down_proj");
  }
}

TEST(DescribeModel, RouterGoesByThreeNames) {
  FakeCheckpoint checkpoint = checkpoint_of(small("mixtral-8x7b"));
  checkpoint.rename("model.layers.1.block_sparse_moe.gate.weight", "model.layers.1.mlp.gate.weight");
  checkpoint.rename("model.layers.2.block_sparse_moe.gate.weight", "model.layers.2.mlp.router.weight");
  const Model model = describe_model(checkpoint);
  EXPECT_EQ(model.find(Role::kRouter, 0)->name, "model.layers.0.block_sparse_moe.gate.weight");
  EXPECT_EQ(model.find(Role::kRouter, 1)->name, "model.layers.1.mlp.gate.weight");
  EXPECT_EQ(model.find(Role::kRouter, 2)->name, "model.layers.2.mlp.router.weight");
}

TEST(DescribeModel, TiedHeadIsTheEmbedding) {
  Json json = small("qwen3-30b-a3b");
  json["tie_word_embeddings"] = true;
  FakeCheckpoint checkpoint = checkpoint_of(json);
  EXPECT_EQ(checkpoint.find("lm_head.weight"), nullptr);
  EXPECT_EQ(describe_model(checkpoint).find(Role::kHead)->name, "model.embed_tokens.weight");
  checkpoint.add("lm_head.weight", {50, 2048});
  const Model model = describe_model(checkpoint);
  EXPECT_EQ(model.find(Role::kHead)->name, "model.embed_tokens.weight");
  EXPECT_THAT(model.ignored, ElementsAre("lm_head.weight"));
}

TEST(DescribeModel, KnownTensorsBesideTheTableAreIgnored) {
  Json json = small("deepseek-v2-lite");
  json["num_nextn_predict_layers"] = 1;
  FakeCheckpoint checkpoint = checkpoint_of(json);
  checkpoint.add("model.layers.0.self_attn.rotary_emb.inv_freq", {32});
  checkpoint.add("model.layers.3.eh_proj.weight", {2048, 4096});
  EXPECT_THAT(describe_model(checkpoint).ignored,
              ElementsAre("model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.3.eh_proj.weight"));
  checkpoint.add("model.layers.4.eh_proj.weight", {2048, 4096});
  expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.4.eh_proj.weight", "deepseek_v2",
               "[2048, 4096]");
}

TEST(DescribeModel, ConfigWithTooFewLayersDoesNotShortenTheModel) {
  Json json = small("qwen1.5-moe-a2.7b");
  const std::vector<TensorSpec> table = tensor_table(parse_config(json, "config.json"));
  json["num_hidden_layers"] = 2;
  EXPECT_THROW(describe_model(FakeCheckpoint(json, table)), Error);
}

TEST(DescribeModel, NamesWhatIsWrong) {
  const Json json = small("qwen1.5-moe-a2.7b");
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.remove("model.layers.2.mlp.experts.7.up_proj.weight");
    expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.2.mlp.experts.7.up_proj.weight",
                 "[1408, 2048]", "no");
  }
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.remove("model.norm.weight");
    expect_error(checkpoint, ErrorKind::kInvalid, "model.norm.weight", "[2048]", "no");
  }
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.remove("model.layers.1.mlp.gate.weight");
    expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.1.mlp.gate.weight", "[8, 2048]", "no");
  }
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.at("model.layers.0.self_attn.q_proj.weight").shape = {2048, 2047};
    expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.0.self_attn.q_proj.weight", "[2048, 2048]",
                 "[2048, 2047]");
  }
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.at("model.layers.0.mlp.experts.3.down_proj.weight").dtype = DType::kF8E4M3;
    expect_error(checkpoint, ErrorKind::kUnsupported, "model.layers.0.mlp.experts.3.down_proj.weight", "BF16",
                 "F8_E4M3");
  }
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.add("model.layers.0.mlp.experts.8.up_proj.weight", {1408, 2048});
    expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.0.mlp.experts.8.up_proj.weight", "qwen2_moe",
                 "[1408");
  }
  {
    FakeCheckpoint checkpoint = checkpoint_of(json);
    checkpoint.stack("model.layers.0.mlp.experts", 7, 1408, 2048, "model.layers.0.mlp.experts");
    expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.0.mlp.experts.gate_up_proj",
                 "[8, 2816, 2048]", "[7,");
  }
}

TEST(DescribeModel, StackedBesideSeparateExpertsIsAnError) {
  FakeCheckpoint checkpoint = checkpoint_of(small("qwen3-30b-a3b"));
  checkpoint.add("model.layers.0.mlp.experts.gate_up_proj", {8, 1536, 2048});
  expect_error(checkpoint, ErrorKind::kInvalid, "model.layers.0.mlp.experts.gate_up_proj", "qwen3_moe",
               "[8, 1536");
}

TEST(DescribeModel, MissingConfigIsNotFound) {
  const FakeCheckpoint checkpoint(nullptr, {});
  try {
    describe_model(checkpoint);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("config.json"));
    EXPECT_EQ(error.where(), checkpoint.path());
  }
}

TEST(DescribeModel, ReadsGenerationConfig) {
  const Json json = small("qwen1.5-moe-a2.7b");
  const FakeCheckpoint checkpoint(json, tensor_table(parse_config(json, "config.json")),
                                  {{"do_sample", true}, {"temperature", 0.5}, {"eos_token_id", {7, 8}}});
  const Model model = describe_model(checkpoint);
  EXPECT_TRUE(model.generation.do_sample);
  EXPECT_EQ(model.generation.temperature, 0.5);
  EXPECT_THAT(model.config.eos, ElementsAre(7, 8));
}

// The tiny checkpoints on disk that the reference implementations were run on.
TEST(DescribeModel, AcceptsTheGoldenCheckpoints) {
  const std::map<std::string, std::vector<std::string>> ignored = {
      {"qwen2_moe_b", {"lm_head.weight"}},
      {"xverse_b", {"lm_head.weight"}},
      {"switch_transformers_b", {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight"}},
      {"deepseek_b",
       {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.1.self_attn.rotary_emb.inv_freq",
        "model.layers.2.self_attn.rotary_emb.inv_freq", "model.layers.3.self_attn.rotary_emb.inv_freq"}},
  };
  std::set<std::string> families;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    const std::string path = sluice::testing::kGoldenModels + "/" + name;
    const Json config = read_json_file(path + "/config.json");
    const std::string type = config["model_type"].get<std::string>();
    SCOPED_TRACE(name);
    const auto checkpoint = store::open_checkpoint(path);
    const Model model = describe_model(*checkpoint);
    EXPECT_EQ(model.config.model_type, type);
    EXPECT_EQ(model.ignored, ignored.contains(name) ? ignored.at(name) : std::vector<std::string>());
    std::uint64_t bytes = 0;
    for (const TensorSpec& spec : model.dense)
      bytes += checkpoint->locate({spec.name, 0, elements(spec)}).first().length;
    for (const ExpertPieces& expert : model.experts) {
      std::uint64_t numbers = 0;
      for (const store::Piece& piece : expert.all()) {
        numbers += piece.elements;
        for (const store::StoredPlane& plane : checkpoint->locate(piece).planes) bytes += plane.extent.length;
      }
      EXPECT_EQ(numbers, model.config.expert_elements());
    }
    for (const std::string& tensor : model.ignored) {
      bytes += checkpoint->locate({tensor, 0, checkpoint->find(tensor)->elements()}).first().length;
    }
    std::uint64_t stored = 0;
    for (const store::TensorInfo& tensor : checkpoint->tensors())
      stored += tensor.format != nullptr
                    ? tensor.format->bytes({tensor.elements() / tensor.shape.back(), tensor.shape.back()})
                    : tensor.elements() * dtype_bytes(tensor.dtype);
    EXPECT_EQ(bytes, stored);  // every byte of the weights has one place
    families.insert(type);
  }
  for (const Architecture& architecture : architectures())
    EXPECT_TRUE(families.contains(std::string(architecture.model_type)))
        << "no golden of " << architecture.model_type;
}

TEST(DescribeModel, EighteenThousandExpertTensorsTakeMilliseconds) {
  const Json json = published("qwen3-30b-a3b");
  const FakeCheckpoint checkpoint = checkpoint_of(json);
  ASSERT_GT(checkpoint.tensors().size(), 18432u);
  auto best = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const Model model = describe_model(checkpoint);
    best = std::min(best, std::chrono::steady_clock::now() - start);
    EXPECT_EQ(model.experts.size(), 6144u);
  }
  const double milliseconds = std::chrono::duration<double, std::milli>(best).count();
  RecordProperty("milliseconds", std::to_string(milliseconds));
  std::printf("describe_model: %.1f ms for %zu tensors\n", milliseconds, checkpoint.tensors().size());
  // The usual time is 50; a quadratic search takes minutes, a sanitizer build ten times as long.
  EXPECT_LT(milliseconds, 1000.0);
}

}  // namespace
}  // namespace sluice::model
