// A model whose experts have matrices in three toy formats, differing between gate, up and down and between
// layers, with biases: the same bits at every budget, and as with the same numbers as fp32 words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"
#include "base/files/scratch_directory.h"
#include "codec/toy_formats.h"
#include "engine/engine.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "fetch/memory/expert_store.h"
#include "kernels/products/format_kernels.h"
#include "model/architecture.h"
#include "model/pack_plan.h"
#include "store/pack/format_store.h"
#include "store/source/store_checkpoint.h"

namespace sluice::engine::formats_test {
namespace {

using codec::MatrixFormat;
using codec::testing::kToy256;
using codec::testing::kToy8;
using codec::testing::kToyFp8;
using codec::testing::toy_matrix;
using codec::testing::ToyMatrix;
using model::Role;

constexpr std::uint64_t kHidden = 256, kWidth = 288;  // 288 is no multiple of 128 or 256
constexpr std::string_view kConfig =
    R"({"model_type": "qwen3_moe", "hidden_act": "silu", "rms_norm_eps": 1e-06,
  "vocab_size": 97, "hidden_size": 256, "head_dim": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
  "num_key_value_heads": 2, "attention_bias": false, "intermediate_size": 64, "moe_intermediate_size": 288,
  "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": true, "decoder_sparse_step": 1,
  "mlp_only_layers": [], "rope_theta": 10000.0, "rope_scaling": null, "max_position_embeddings": 512,
  "sliding_window": null, "use_sliding_window": false, "tie_word_embeddings": false, "bos_token_id": 1,
  "eos_token_id": 2, "torch_dtype": "bfloat16"})";

// Formats of gate, up and down by layer. The down matrices have 288 columns.
const MatrixFormat* const kFormats[3][3] = {
    {&kToy8, &kToyFp8, &kToyFp8}, {&kToy256, &kToy8, &kToy8}, {&kToyFp8, &kToy256, &codec::kFormatF32}};

// What tensors become in the checkpoint.
enum class Experts { kToys, kWords };

// One file of weights in memory order, at odd offsets: no plane is aligned.
class ToyCheckpoint final : public store::Checkpoint {
 public:
  ToyCheckpoint(std::string directory, Experts experts)
      : path_(std::move(directory)), files_({path_ + "/" + (experts == Experts::kToys ? "toys" : "words")}) {
    std::ofstream(path_ + "/config.json") << kConfig;
    std::mt19937_64 random(4);  // the same numbers in both checkpoints
    for (const model::TensorSpec& spec :
         model::tensor_table(model::parse_config(read_json_file(path_ + "/config.json"), "config.json")))
      add(spec, numbers(random, spec), experts);
    for (std::int32_t layer = 0; layer < 3; ++layer)
      for (const auto& [role, length] : {std::pair{Role::kExpertGateBias, kWidth},
                                         {Role::kExpertUpBias, kWidth},
                                         {Role::kExpertDownBias, kHidden}}) {
        const model::TensorSpec spec{
            std::string(model::role_name(role)) + std::to_string(layer), {6, length}, role, layer, -1};
        put_words(spec, numbers(random, spec));
        biases_.push_back(spec);
      }
    std::ofstream(files_[0], std::ios::binary)
        .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    std::ranges::sort(tensors_, {}, &store::TensorInfo::name);
  }

  // The model with the biases that the architecture of its config does not have.
  model::Model model() const {
    model::Model model = model::describe_model(*this);
    model.dense.insert(model.dense.end(), biases_.begin(), biases_.end());
    return model;
  }

  const std::string& path() const override { return path_; }
  bool packed() const override { return false; }
  const std::vector<std::string>& weight_files() const override { return files_; }
  const std::vector<store::TensorInfo>& tensors() const override { return tensors_; }
  const store::TensorInfo* find(std::string_view name) const override {
    const auto found = std::ranges::find(tensors_, name, &store::TensorInfo::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  // Pieces are whole tensors, or rows of words.
  store::StoredPiece locate(const store::Piece& piece) const override {
    store::StoredPiece stored = pieces_.at(piece.tensor);
    if (piece.elements == stored.elements) return stored;
    SLUICE_CHECK(stored.format == &codec::kFormatF32, piece.tensor);
    stored.elements = piece.elements;
    stored.shape = {piece.elements / stored.shape.columns, stored.shape.columns};
    stored.planes[0].extent.offset += piece.first_element * sizeof(float);
    stored.planes[0].extent.length = piece.elements * sizeof(float);
    return stored;
  }
  std::vector<store::Piece> pieces_of(std::string_view tensor) const override {
    return {{std::string(tensor), 0, find(tensor)->elements()}};
  }
  std::string codec() const override { return "none"; }
  std::optional<std::string> find_file(std::string_view relative) const override {
    if (relative != "config.json") return std::nullopt;
    return path_ + "/config.json";
  }
  std::string files_directory() const override { return path_; }
  void check_files() const override {}

  // The same as a store, with the directory that it might have been packed from. Returns the store's path.
  std::string write_store(const std::string& directory) const {
    store::testing::FormatModel model{.dense = {}, .experts = {}, .config = std::string(kConfig)};
    for (const store::TensorInfo& tensor : tensors_)
      if (tensor.name.find(".experts.") == std::string::npos)
        model.dense.push_back({tensor.name, "F32", tensor.shape, plane(tensor.name, 0)});
    for (const model::ExpertPieces& expert : model::describe_model(*this).experts) {
      store::testing::FormatExpert& stored = model.experts.emplace_back(expert.layer, expert.index);
      for (const store::Piece& one : expert.all()) stored.matrices.push_back(matrix(one.tensor));
    }
    write_format_store(directory + "/source", directory + "/toys.sluice", model, codec::testing::kToys);
    return directory + "/toys.sluice";
  }

  // Offset of the first byte of a plane in the one file.
  Bytes offset(const std::string& tensor, std::size_t plane) const {
    return pieces_.at(tensor).planes[plane].extent.offset;
  }

 private:
  std::string plane(const std::string& tensor, std::size_t plane) const {
    const store::Extent& extent = pieces_.at(tensor).planes[plane].extent;
    return bytes_.substr(extent.offset, extent.length);
  }
  // The first plane has the tensor's name.
  store::testing::FormatMatrix matrix(const std::string& tensor) const {
    const store::StoredPiece& piece = pieces_.at(tensor);
    store::testing::FormatMatrix matrix{piece.format, piece.shape, {}};
    for (std::size_t i = 0; i < piece.plane_count(); ++i) {
      const std::string bytes = plane(tensor, i);
      if (piece.raw())
        matrix.planes.push_back({tensor, "F32", {piece.shape.rows, piece.shape.columns}, bytes});
      else if (i == 0)
        matrix.planes.push_back({tensor, "U8", {piece.shape.rows, bytes.size() / piece.shape.rows}, bytes});
      else
        matrix.planes.push_back({tensor + ".scales", "U8", {bytes.size()}, bytes});
    }
    return matrix;
  }

  static std::vector<float> numbers(std::mt19937_64& random, const model::TensorSpec& spec) {
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : spec.shape) count *= dimension;
    std::normal_distribution<float> normal(spec.shape.size() == 1 ? 1.0f : 0.0f, 0.08f);
    std::vector<float> all(count);
    for (float& number : all) number = normal(random);
    return all;
  }

  void add(const model::TensorSpec& spec, const std::vector<float>& numbers, Experts experts) {
    const bool expert = spec.expert >= 0;
    const std::size_t matrix = spec.role == Role::kExpertGate ? 0 : spec.role == Role::kExpertUp ? 1 : 2;
    const MatrixFormat* const format = expert ? kFormats[spec.layer][matrix] : &codec::kFormatF32;
    tensors_.push_back({spec.name, DType::kF32, spec.shape, nullptr});
    if (format->words) return put_words(spec, numbers);
    const ToyMatrix toy = toy_matrix(*format, {spec.shape[0], spec.shape[1]}, numbers);
    if (experts == Experts::kWords) return put_words(spec, toy.floats());
    tensors_.back().format = format;
    store::StoredPiece& piece = pieces_[spec.name];
    piece.format = format;
    piece.dtype = DType::kF32;
    piece.elements = numbers.size();
    piece.shape = toy.shape;
    for (std::size_t plane = 0; plane < toy.planes.size(); ++plane)
      piece.planes[plane].extent = put(std::as_bytes(std::span(toy.planes[plane])));
  }

  void put_words(const model::TensorSpec& spec, const std::vector<float>& numbers) {
    const std::uint64_t columns = spec.shape.back();
    store::StoredPiece& piece = pieces_[spec.name];
    piece.format = &codec::kFormatF32;
    piece.dtype = DType::kF32;
    piece.elements = numbers.size();
    piece.shape = {numbers.size() / columns, columns};
    piece.planes[0].extent = put(std::as_bytes(std::span(numbers)));
  }

  store::Extent put(std::span<const std::byte> bytes) {
    bytes_.append(bytes_.size() % 2 == 0 ? 3 : 2, '\xa5');
    const store::Extent extent{0, bytes_.size(), bytes.size()};
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return extent;
  }

  const std::string path_;
  const std::vector<std::string> files_;
  std::string bytes_;
  std::vector<store::TensorInfo> tensors_;
  std::map<std::string, store::StoredPiece> pieces_;
  std::vector<model::TensorSpec> biases_;
};

class ToyModel : public ::testing::Test {
 protected:
  ToyModel()
      : table_({kernels::decoded_format(kToy8), kernels::decoded_format(kToyFp8),
                kernels::decoded_format(kToy256)}) {}

  EngineOptions options(Math math) const {
    EngineOptions options;
    options.memory = kGiB;
    options.threads = 2;
    options.positions = 48;
    options.chunk = 7;
    options.math = math;
    options.formats = &table_;
    options.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
    return options;
  }

  // Logits of all tokens: of 15 by a prompt in chunks, of the others one by one.
  static std::vector<float> logits(Engine& engine) {
    std::mt19937_64 random(6);
    std::vector<tokenizer::TokenId> tokens(21);
    for (tokenizer::TokenId& token : tokens) token = static_cast<tokenizer::TokenId>(random() % 97);
    std::vector<float> all;
    const auto take = [&](std::span<const float> row) { all.insert(all.end(), row.begin(), row.end()); };
    const auto sequence = engine.new_sequence();
    engine.prefill(
        *sequence, std::span(tokens).first(15),
        {[](std::size_t) { return true; }, [&](std::size_t, std::span<const float> row) { take(row); }});
    for (const tokenizer::TokenId token : std::span(tokens).subspan(15))
      take(engine.decode(*sequence, token));
    return all;
  }

  std::vector<float> logits(const ToyCheckpoint& checkpoint, const EngineOptions& options) {
    const model::Model model = checkpoint.model();
    Engine engine(checkpoint, model, resolve(options, checkpoint, model));
    return logits(engine);
  }

  sluice::testing::ScratchDirectory scratch_;
  const kernels::FormatTable table_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_F(ToyModel, HasTheBitsOfItsFp32WordsAtEveryBudget) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys), words(scratch_.path(), Experts::kWords);
  const model::Model model = toys.model();
  const EngineOptions all = options(Math::kF32);
  const std::vector<float> expected = logits(words, all);
  ASSERT_EQ(expected.size(), 21u * 97);
  EXPECT_NE(*std::ranges::max_element(expected), *std::ranges::min_element(expected));
  EXPECT_TRUE(same_bits(logits(toys, all), expected));

  const Bytes minimum = Engine(toys, model, resolve(all, toys, model)).report().memory.minimum;
  for (const std::string cache : {"none", "lru", "lfu"}) {
    EngineOptions little = all;
    little.cache = cache;
    little.memory = minimum + 512 * kKiB;
    Engine engine(toys, model, resolve(little, toys, model));
    EXPECT_TRUE(same_bits(logits(engine), expected)) << cache;
    EXPECT_GT(engine.report().experts.counters().demand_reads, 18u) << "some expert was read again";
  }
}

// Where products of BF16 words round activations, those with toys do not.
TEST_F(ToyModel, HasTheSameBitsAtEveryBudgetWhereTheMachineRounds) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys);
  const EngineOptions all = options(Math::kAuto);
  const model::Model model = toys.model();
  const std::vector<float> expected = logits(toys, all);  // first: the code that runs counts as memory
  EngineOptions little = all;
  little.memory = Engine(toys, model, resolve(all, toys, model)).report().memory.minimum + 512 * kKiB;
  EXPECT_TRUE(same_bits(logits(toys, little), expected));
}

// A store of the same matrices, which is opened, checked and described as any other.
TEST_F(ToyModel, HasTheSameBitsFromAStoreAtEveryBudget) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys);
  const EngineOptions all = options(Math::kF32);
  const std::string path = toys.write_store(scratch_.path());
  const auto stored = store::open_store_checkpoint(path, codec::testing::kToys);
  const model::Model model = model::describe_model(toys), same = model::describe_model(*stored);
  EXPECT_EQ(stored->tensors().size(), toys.tensors().size())
      << "planes of scales are no tensors of the model";
  const auto run = [&](const store::Checkpoint& checkpoint, const model::Model& of, Bytes memory) {
    EngineOptions own = all;
    own.memory = memory;
    Engine engine(checkpoint, of, resolve(own, checkpoint, of));
    std::vector<float> found = logits(engine);
    return std::tuple(found, engine.report().memory.minimum, engine.report().experts.counters().demand_reads);
  };
  const auto [expected, minimum, reads] = run(toys, model, kGiB);
  const auto [whole, least, few] = run(*stored, same, kGiB);
  EXPECT_TRUE(same_bits(whole, expected));
  const auto [tight, unused, many] = run(*stored, same, least + 512 * kKiB);
  EXPECT_TRUE(same_bits(tight, expected));
  EXPECT_GT(many, few) << "some expert was read again";
}

TEST_F(ToyModel, IsSmallerThanItsWords) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys), words(scratch_.path(), Experts::kWords);
  const model::Model of_toys = toys.model(), of_words = words.model();
  const Engine small(toys, of_toys, resolve(options(Math::kF32), toys, of_toys));
  const Engine large(words, of_words, resolve(options(Math::kF32), words, of_words));
  const experts::ExpertSizes &small_sizes = small.report().experts.sizes(),
                             &large_sizes = large.report().experts.sizes();
  const experts::ExpertId id{1, 2};  // in toy256, toy8 and toy8
  const Bytes own = kWidth * kHidden / 256 * 132 + 2 * (kWidth * kHidden / 32 * 34);
  EXPECT_GE(small_sizes.bytes(id).full, own);
  EXPECT_LT(small_sizes.bytes(id).full, own + 6 * 4096 + own / 64);
  EXPECT_LT(small_sizes.bytes(id).full, large_sizes.bytes(id).full / 3);
}

TEST_F(ToyModel, BiasesCount) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys);
  model::Model without = toys.model();
  std::erase_if(without.dense,
                [](const model::TensorSpec& spec) { return spec.role == Role::kExpertDownBias; });
  Engine engine(toys, without, resolve(options(Math::kF32), toys, without));
  EXPECT_FALSE(same_bits(logits(engine), logits(toys, options(Math::kF32))));
}

TEST_F(ToyModel, AFormatWithoutKernelsIsRefusedByName) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys);
  EngineOptions unknown = options(Math::kF32);
  unknown.formats = nullptr;
  try {
    const model::Model model = toys.model();
    const Engine engine(toys, model, resolve(unknown, toys, model));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_EQ(error.found_text().substr(0, 3), "toy");
  }
}

// The plan of a pack is the same, whatever the format of experts.
TEST_F(ToyModel, IsPlannedAsWordsAre) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys), words(scratch_.path(), Experts::kWords);
  const store::PackPlan plan = model::pack_plan(toys), same = model::pack_plan(words);
  EXPECT_EQ(plan.experts.size(), 18u);
  EXPECT_EQ(plan.experts.size(), same.experts.size());
  EXPECT_EQ(plan.ranges.size(), same.ranges.size());
}

// A scale that is no number is found when the expert is read, with its place in the file.
TEST_F(ToyModel, AScaleThatIsNoNumberIsRefusedWithItsPlace) {
  const ToyCheckpoint toys(scratch_.path(), Experts::kToys);
  std::string tensor;
  const model::Model model = toys.model();
  for (const model::ExpertPieces& expert : model.experts)
    if (expert.layer == 0 && expert.index == 0) tensor = expert.gate.tensor;  // toy8: the scale comes first
  std::fstream file(toys.weight_files()[0], std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(toys.offset(tensor, 0)));
  file.write("\x00\x7e", 2).flush();  // binary16 NaN
  Engine engine(toys, model, resolve(options(Math::kF32), toys, model));
  try {
    logits(engine);
    FAIL() << "expert 0 of layer 0 was never read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_EQ(error.offset(), toys.offset(tensor, 0));
    EXPECT_EQ(error.found_text(), "block 0");
  }
}

}  // namespace
}  // namespace sluice::engine::formats_test
