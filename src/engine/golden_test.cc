// Conformance: our logits against Hugging Face transformers (or the plain references, see tools/oracle) on
// tiny random models of every architecture, and our own logits against each other, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/forward/dense/dense_choice.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "kernels/context.h"
#include "kernels/products/packed/packed_matmul.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::golden_test {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = sluice::testing::kGoldenModels;
const fs::path kGoldens = sluice::testing::kGoldens;

struct Golden {
  std::vector<tokenizer::TokenId> tokens, greedy;
  std::vector<tokenizer::TokenId> encoder_tokens;  // for an encoder-decoder; `tokens` are then the decoder's
  std::vector<float> logits;                       // (tokens, vocab)
  double largest = 0;
};

// Reads the part of .npy v1.0 that the tool writes: <f4, C order.
std::vector<float> read_npy(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char head[10];
  file.read(head, 10);
  EXPECT_EQ(std::memcmp(head, "\x93NUMPY\x01\x00", 8), 0) << path;
  const std::size_t header = static_cast<unsigned char>(head[8]) + 256u * static_cast<unsigned char>(head[9]);
  std::string text(header, ' ');
  file.read(text.data(), static_cast<std::streamsize>(header));
  EXPECT_NE(text.find("'<f4'"), std::string::npos);
  std::vector<float> values((fs::file_size(path) - 10 - header) / 4);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
  return values;
}

Golden read_golden(const std::string& name) {
  Golden golden;
  const fs::path directory = kGoldens / (name + ".golden");
  const Json json = read_json_file(directory / "golden.json");
  golden.tokens = json.at("tokens").get<std::vector<tokenizer::TokenId>>();
  golden.greedy = json.at("greedy").get<std::vector<tokenizer::TokenId>>();
  if (json.contains("encoder_tokens"))
    golden.encoder_tokens = json.at("encoder_tokens").get<std::vector<tokenizer::TokenId>>();
  golden.logits = read_npy(directory / "logits.npy");
  for (float logit : golden.logits) golden.largest = std::max<double>(golden.largest, std::abs(logit));
  return golden;
}

EngineOptions small_options(Math math) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = math;
  options.positions = 96;
  options.encoder_positions = 64;  // ignored by a decoder-only model
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

// Logits of every token, in steps of at most `chunk` tokens.
std::vector<float> all_logits(const std::string& path, const Golden& golden, const EngineOptions& options) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  Engine engine(*checkpoint, model, resolve(options, *checkpoint, model), 4);
  const auto sequence = engine.new_sequence();
  if (model.config.has_encoder()) engine.encode(*sequence, golden.encoder_tokens);
  std::vector<float> logits;
  engine.prefill(*sequence, golden.tokens,
                 {[](std::size_t) { return true; },
                  [&](std::size_t, std::span<const float> row) {
                    logits.insert(logits.end(), row.begin(), row.end());
                  }});
  return logits;
}

MemoryPlan plan_of(const std::string& path, const EngineOptions& options) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  return Engine(*checkpoint, model, resolve(options, *checkpoint, model), 4).report().memory;
}

class GoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return kModels / GetParam(); }
};

TEST_P(GoldenTest, F32LogitsEqualTheOracle) {
  const Golden golden = read_golden(GetParam());
  const std::vector<float> logits = all_logits(path(), golden, small_options(Math::kF32));
  ASSERT_EQ(logits.size(), golden.logits.size());
  double worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - golden.logits[i]));
  EXPECT_LE(worst, 1e-4 * golden.largest);
  RecordProperty("worst_relative", std::to_string(worst / golden.largest));
}

// Expects values within `share` of the largest logit.
void expect_near_at_nine_positions_of_ten(const std::vector<float>& logits, const Golden& golden,
                                          double share) {
  const std::size_t vocab = logits.size() / golden.tokens.size();
  std::size_t near = 0;
  for (std::size_t t = 0; t < golden.tokens.size(); ++t) {
    double worst = 0;
    for (std::size_t i = t * vocab; i < (t + 1) * vocab; ++i)
      worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - golden.logits[i]));
    near += worst <= share * golden.largest;
  }
  EXPECT_GE(near * 10, golden.tokens.size() * 9);
}

TEST_P(GoldenTest, AutoLogitsAreNearTheOracleAtNinePositionsOfTen) {
  const Golden golden = read_golden(GetParam());
  expect_near_at_nine_positions_of_ten(all_logits(path(), golden, small_options(Math::kAuto)), golden, 3e-2);
}

TEST_P(GoldenTest, ACacheOfEightBitsIsSmallerAndLogitsStayNearTheOracle) {
  const Golden golden = read_golden(GetParam());
  EngineOptions options = small_options(Math::kF32);
  options.kv = DType::kBF16;
  const Bytes words = plan_of(path(), options).kv;
  const std::vector<float> plain = all_logits(path(), golden, options);
  options.kv = DType::kI8;
  EXPECT_LT(plan_of(path(), options).kv, words);
  const std::vector<float> logits = all_logits(path(), golden, options);
  EXPECT_NE(logits, plain);
  expect_near_at_nine_positions_of_ten(logits, golden, 5e-2);
}

TEST_P(GoldenTest, F32GreedyTokensEqualTheOracle) {
  const Golden golden = read_golden(GetParam());
  const auto checkpoint = store::open_checkpoint(path());
  const model::Model model = model::describe_model(*checkpoint);
  Engine engine(*checkpoint, model, resolve(small_options(Math::kF32), *checkpoint, model));
  GenerateRequest request;
  request.prompt = golden.encoder_tokens.empty() ? golden.tokens : golden.encoder_tokens;
  request.max_tokens = golden.greedy.size();
  request.ignore_eos = true;
  EXPECT_EQ(generate(engine, nullptr, request).tokens, golden.greedy);
}

// Prompts of different lengths, early finishers: each sequence of a batch gets what it gets alone.
TEST_P(GoldenTest, EverySequenceOfABatchGetsTheTokensThatItGetsAlone) {
  const Golden golden = read_golden(GetParam());
  const auto checkpoint = store::open_checkpoint(path());
  const model::Model model = model::describe_model(*checkpoint);
  std::vector<GenerateRequest> requests(5);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.assign(golden.tokens.begin() + static_cast<std::ptrdiff_t>(i),
                              golden.tokens.end() - static_cast<std::ptrdiff_t>(2 * i));
    requests[i].max_tokens = std::vector<std::size_t>{9, 1, 6, 0, 12}[i];
    requests[i].ignore_eos = true;
  }
  EngineOptions options = small_options(Math::kAuto);
  std::vector<std::vector<tokenizer::TokenId>> alone;
  {
    Engine engine(*checkpoint, model, resolve(options, *checkpoint, model));
    for (const GenerateRequest& request : requests)
      alone.push_back(generate(engine, nullptr, request).tokens);
  }
  options.sequences = requests.size();
  Engine engine(*checkpoint, model, resolve(options, *checkpoint, model));
  const std::vector<GenerateResult> together = generate(engine, nullptr, requests);
  ASSERT_EQ(together.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i].tokens, alone[i]) << i;
    EXPECT_EQ(together[i].tokens.size(), requests[i].max_tokens);
  }
  EXPECT_EQ(engine.statistics().decode.steps, 11u);  // as many as the longest sequence needs
}

TEST_P(GoldenTest, EveryWayOfRunningGivesTheSameBits) {
  const Golden golden = read_golden(GetParam());
  for (const auto& [math, kv] : std::vector<std::pair<Math, std::optional<DType>>>{
           {Math::kF32, {}}, {Math::kAuto, {}}, {Math::kAuto, DType::kI8}}) {
    EngineOptions plain = small_options(math);
    plain.kv = kv;
    const std::vector<float> expected = all_logits(path(), golden, plain);
    const auto expect_same = [&](const char* what, const EngineOptions& options) {
      const std::vector<float> found = all_logits(path(), golden, options);
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0) << what;
    };
    for (const std::size_t chunk : {1, 3, 7, 48}) {
      EngineOptions options = plain;
      options.chunk = chunk;
      expect_same("chunk", options);
    }
    EngineOptions options = plain;
    options.threads = 1;
    expect_same("threads", options);
    for (const Isa isa : available_isas()) {
      // Rounding products have orders of sums of their own.
      if (math == Math::kAuto && kernels::rounded_products(isa) != kernels::rounded_products(best_isa()))
        continue;
      options = plain;
      options.isa = isa_name(isa);
      expect_same("isa", options);
    }
    options = plain;
    options.memory = std::nullopt;
    expect_same("default budget", options);
    options = plain;
    options.fetch.io = fetch::IoMode::kMmap;
    expect_same("mmap", options);
    options = plain;
    options.fetch.disk.method = DiskMethod::kPread;
    expect_same("pread", options);
  }
}

// A directory, from the smallest sufficient budget, over a few experts, to all of them.
TEST_P(GoldenTest, ADirectoryGivesTheSameBitsAtEveryBudget) {
  const Golden golden = read_golden(GetParam());
  EngineOptions options = small_options(Math::kF32);
  const std::vector<float> expected = all_logits(path(), golden, options);
  options.chunk = 5;
  const MemoryPlan plan = plan_of(path(), options);
  for (const std::string cache : {"none", "lru", "lfu"})
    for (const Bytes experts : {Bytes{0}, plan.experts / 3, plan.experts / 2}) {
      options.cache = cache;
      options.memory = plan.minimum + experts + 512 * kKiB;  // the test's own heap grows a little meanwhile
      const std::vector<float> found = all_logits(path(), golden, options);
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0)
          << cache << " " << *options.memory;
    }
}

// Codec and keep_columns: only with keep_columns are these narrow, small matrices, of experts and dense,
// computed with in tiles.
using Store = std::pair<std::string, bool>;
const Store kStores[] = {
    {"none", false}, {"zstd", false}, {"lz4", false}, {"native", false}, {"native", true}};

class PackedGoldenTest : public GoldenTest {};

void expect_stores_give_the_bits_of(const std::string& directory, const Golden& golden, Math math,
                                    std::span<const Store> stores) {
  EngineOptions options = small_options(math);
  const std::vector<float> expected = all_logits(directory, golden, options);
  const auto expect_same = [&](const std::string& what, const std::string& store) {
    const std::vector<float> found = all_logits(store, golden, options);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0) << what;
  };
  const sluice::testing::ScratchDirectory scratch;
  for (const auto& [codec, keep_columns] : stores) {
    const std::string store = scratch.path() + "/" + codec + (keep_columns ? "k" : "") + ".sluice";
    store::PackOptions pack;
    pack.codec = codec;
    pack.chunks = 3;
    pack.keep_columns = keep_columns;
    if (keep_columns) pack.least_split_dense = 0;
    store::pack(directory, store, model::pack_plan(*store::open_checkpoint(directory)), pack);
    options = small_options(math);
    expect_same(codec, store);

    const auto packed = store::open_checkpoint(store);
    const store::Piece first_expert = model::describe_model(*packed).experts.at(0).up;
    const bool split = packed->locate(first_expert).coded();

    // From the smallest sufficient budget, over a few experts, to all of them.
    options.chunk = 5;
    const MemoryPlan plan = plan_of(store, options);
    const std::vector<std::string> caches = {"none", "lru", "lfu", "fifo", "marking"};
    for (std::size_t i = 0; i < caches.size(); ++i) {
      options.cache = caches[i];
      options.cache_scope = i % 2 == 0 ? CacheScope::kGlobal : CacheScope::kLayer;
      options.keep = split && i % 2 == 1 ? Keep::kPacked : Keep::kFull;
      for (const Bytes experts : {Bytes{0}, plan.experts / 3, plan.experts / 2}) {
        options.memory = plan.minimum + experts + 512 * kKiB;  // the test's own heap grows a little meanwhile
        expect_same(codec + " " + caches[i] + " " + std::to_string(*options.memory), store);
      }
    }
  }
}

TEST_P(PackedGoldenTest, StoresOfEveryCodecGiveTheBitsOfTheDirectoryAtEveryBudget) {
  expect_stores_give_the_bits_of(path(), read_golden(GetParam()), Math::kF32, kStores);
}

// On a matrix unit, if there is one: its products with both views.
TEST_P(PackedGoldenTest, SoDoProductsThatRound) {
  expect_stores_give_the_bits_of(path(), read_golden(GetParam()), Math::kAuto, std::span(kStores).last(2));
}

// Dense matrices in their stored form, with every instruction set: the logits of the directory's words, bit
// for bit, and the planned memory.
TEST_P(PackedGoldenTest, DenseMatricesAsTheyAreStoredGiveTheSameBits) {
  const Golden golden = read_golden(GetParam());
  const sluice::testing::ScratchDirectory scratch;
  const std::string store = scratch.path() + "/k.sluice";
  store::PackOptions pack;
  pack.chunks = 2;
  pack.keep_columns = true;
  pack.least_split_dense = 0;
  store::pack(path(), store, model::pack_plan(*store::open_checkpoint(path())), pack);
  const auto checkpoint = store::open_checkpoint(store);
  const model::Model model = model::describe_model(*checkpoint);
  const auto output = std::ranges::find(model.dense, model::Role::kO, &model::TensorSpec::role);
  ASSERT_NE(output, model.dense.end());
  const bool bf16 = checkpoint->find(output->name)->dtype == DType::kBF16;  // otherwise nothing is split
  std::vector<std::string> views = {"words", "auto"};
  if (bf16) {
    views.emplace_back("packed");
  } else {
    EngineOptions options = small_options(Math::kF32);
    options.dense = DenseForm::kPacked;
    EXPECT_THROW(Engine(*checkpoint, model, resolve(options, *checkpoint, model)), Error);
  }
  for (const Math math : {Math::kF32, Math::kAuto}) {
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(std::string(isa_name(isa)));
      EngineOptions options = small_options(math);
      options.isa = isa_name(isa);
      options.chunk = 5;
      const std::vector<float> expected = all_logits(path(), golden, options);
      for (const std::string& dense : views) {
        SCOPED_TRACE(dense);
        options.dense = parse_dense(dense);
        const std::vector<float> found = all_logits(store, golden, options);
        ASSERT_EQ(found.size(), expected.size());
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0);
      }
    }
  }
  for (const std::string& dense : views) {
    SCOPED_TRACE(dense);
    EngineOptions options = small_options(Math::kF32);
    options.dense = parse_dense(dense);
    const Engine engine(*checkpoint, model, resolve(options, *checkpoint, model));
    const bool packed =
        bf16 && (dense == "packed" || (dense == "auto" && kernels::multiplies_packed(best_isa())));
    const RunReport report = engine.report();
    EXPECT_EQ(report.dense_choice.view == DenseView::kPacked, packed);
    const codec::MatrixRef& matrix = report.weights.matrix(model::Role::kO, output->layer);
    EXPECT_EQ(matrix.format == &codec::kFormatPacked, packed);
    EXPECT_EQ(!matrix.format->words, packed);
    EXPECT_EQ(report.accountant.used(device::Account::kDense), report.memory.dense);
  }
}

// Every preset and every scheduler, with pools of all states (equal shares fill them all), in little memory.
TEST_P(PackedGoldenTest, EveryPresetAndSchedulerGivesTheSameBits) {
  const Golden golden = read_golden(GetParam());
  EngineOptions options = small_options(Math::kF32);
  const std::vector<float> expected = all_logits(path(), golden, options);
  const sluice::testing::ScratchDirectory scratch;
  for (const auto& [codec, keep_columns] : kStores) {
    if (codec == "lz4") continue;
    const std::string store = scratch.path() + "/" + codec + (keep_columns ? "k" : "") + ".sluice";
    store::PackOptions pack;
    pack.codec = codec;
    pack.chunks = 3;
    pack.keep_columns = keep_columns;
    if (keep_columns) pack.least_split_dense = 0;
    store::pack(path(), store, model::pack_plan(*store::open_checkpoint(path())), pack);
    options.chunk = 5;
    const MemoryPlan plan = plan_of(store, options);
    options.memory = plan.minimum + plan.experts / 2 + 512 * kKiB;
    const auto expect_same = [&](std::string_view what) {
      const std::vector<float> found = all_logits(store, golden, options);
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0)
          << codec << " " << what;
    };
    for (const experts::Preset& preset : experts::presets()) {
      if (preset.sliced()) continue;
      options.preset = preset.name;
      expect_same(preset.name);
    }
    options.preset = "z-C";
    for (const experts::SchedulerPolicy& scheduler : experts::scheduler_policies()) {
      options.scheduler = scheduler.name;
      expect_same(scheduler.name);
    }
    options.scheduler.clear();
    for (const experts::PrefetchPolicy& prefetch : experts::prefetch_policies()) {
      if (prefetch.needs != experts::PrefetchNeeds::kNothing) continue;
      options.prefetch = prefetch.name;
      expect_same(prefetch.name);
    }
    options = small_options(Math::kF32);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::ValuesIn(sluice::testing::golden_model_names()),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Models, PackedGoldenTest, ::testing::ValuesIn(sluice::testing::golden_model_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::engine::golden_test
