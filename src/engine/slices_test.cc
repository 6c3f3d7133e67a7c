// Models in slices on the real engine: against a plain model with the same values, and our own logits against
// each other, bit for bit, for all budgets, threads, disks and faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "codec/slices/int8_matrix.h"
#include "codec/slices/sliced_matrix.h"
#include "engine/engine.h"
#include "engine/forward/common/measure_profile.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "experts/routing/miss_account.h"
#include "experts/routing/miss_constraint.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using experts::ConstraintMode;
using experts::Part;
using experts::Parts;
using experts::PrecisionMode;
using store::testing::TempDirectory;

constexpr Parts kBoth = Part::kMsb | Part::kLsb;
const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

void pack_sliced(const std::string& source, const std::string& target, codec::SliceBits bits,
                 store::DenseRounding dense = store::DenseRounding::kExact) {
  store::PackOptions options;
  options.slices = bits;
  options.dense = dense;
  if (dense == store::DenseRounding::kInt8) options.least_split_dense = 0;  // also small matrices
  store::pack(source, target, model::pack_plan(*store::open_checkpoint(source)), options);
}

// A checkpoint with its description.
struct Opened {
  explicit Opened(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

EngineOptions options_of(PrecisionMode precision) {
  EngineOptions options;
  options.memory = kGiB;
  options.threads = 2;
  options.positions = 96;
  options.chunk = 16;
  options.precision = precision;
  options.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
  return options;
}

std::vector<tokenizer::TokenId> random_tokens(std::size_t count, std::uint32_t vocab, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<tokenizer::TokenId> tokens(count);
  for (tokenizer::TokenId& token : tokens) token = static_cast<tokenizer::TokenId>(random() % vocab);
  return tokens;
}

// Logits of every token: of the first `prompt` tokens by a prefill, of the others one by one.
std::vector<std::vector<float>> logits_of(Engine& engine, std::span<const tokenizer::TokenId> tokens,
                                          std::size_t prompt) {
  std::vector<std::vector<float>> all;
  const auto sequence = engine.new_sequence();
  const auto take = [&](std::span<const float> row) { all.emplace_back(row.begin(), row.end()); };
  if (prompt > 0)
    engine.prefill(
        *sequence, tokens.first(prompt),
        {[](std::size_t) { return true; }, [&](std::size_t, std::span<const float> row) { take(row); }});
  for (const tokenizer::TokenId token : tokens.subspan(prompt)) take(engine.decode(*sequence, token));
  return all;
}

std::string file_bytes(const std::string& path, const store::Extent& extent) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(extent.length, '\0');
  file.seekg(static_cast<std::streamoff>(extent.offset));
  EXPECT_TRUE(file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
  return bytes;
}

// The values of a dense tensor in codes of 8 bits; empty for any other tensor.
std::vector<float> int8_values(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor) {
  const std::vector<store::Piece> pieces = checkpoint.pieces_of(tensor.name);
  const store::StoredPiece stored = checkpoint.locate(pieces[0]);
  if (pieces.size() != 1 || stored.format != &codec::kFormatInt8) return {};
  const codec::Int8Shape shape{stored.cells()};
  const std::string bytes = file_bytes(checkpoint.weight_files()[stored.first().file], stored.first());
  std::vector<float> values(tensor.elements());
  for (std::uint64_t row = 0; row < shape.rows; ++row)
    codec::dequantise_int8_row(std::as_bytes(std::span(bytes)), shape, row,
                               std::span(values).subspan(row * shape.columns, shape.columns));
  return values;
}

// Writes a plain directory with F32 matrices of the values that a sliced store stands for.
void write_plain_model(const std::string& source, const Opened& sliced, codec::SliceView which,
                       const std::string& target) {
  const Opened from(source);
  std::map<std::string, std::vector<float>> experts;
  for (const model::ExpertPieces& pieces : sliced.model.experts) {
    for (const store::Piece& piece : pieces.all()) {
      const store::StoredPiece stored = sliced.checkpoint->locate(piece);
      const codec::SlicedShape shape{stored.cells(), *sliced.checkpoint->slices()};
      const auto& files = sliced.checkpoint->weight_files();
      const std::string msb = file_bytes(files[stored.first().file], stored.first()),
                        lsb = file_bytes(files[stored.first().file], stored.planes[1].extent);
      const codec::SlicedView view =
          codec::sliced_view(shape, std::as_bytes(std::span(msb)), std::as_bytes(std::span(lsb)));
      std::vector<float>& tensor = experts[piece.tensor];
      tensor.resize(std::max<std::size_t>(tensor.size(), piece.first_element + piece.elements));
      for (std::uint64_t row = 0; row < shape.rows; ++row)
        codec::dequantise_row(
            view, which, row,
            std::span(tensor).subspan(piece.first_element + row * shape.columns, shape.columns));
    }
  }
  std::vector<store::testing::TestTensor> tensors;
  for (const store::TensorInfo& info : from.checkpoint->tensors()) {
    if (!experts.contains(info.name))
      if (std::vector<float> dense = int8_values(*sliced.checkpoint, info); !dense.empty())
        experts[info.name] = std::move(dense);
    if (const auto at = experts.find(info.name); at != experts.end()) {
      const auto bytes = std::as_bytes(std::span(at->second));
      tensors.push_back({info.name, "F32", info.shape,
                         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
      continue;
    }
    const store::StoredPiece piece = from.checkpoint->locate({info.name, 0, info.elements()});
    tensors.push_back({info.name, std::string(dtype_name(info.dtype)), info.shape,
                       file_bytes(from.checkpoint->weight_files()[piece.first().file], piece.first())});
  }
  store::testing::write_file(target + "/model.safetensors", store::testing::safetensors_bytes(tensors));
  fs::copy_file(source + "/config.json", target + "/config.json");
}

double largest_of(const std::vector<std::vector<float>>& rows) {
  double largest = 0;
  for (const auto& row : rows)
    for (const float value : row) largest = std::max<double>(largest, std::abs(value));
  return largest;
}

double furthest(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::size_t i = 0; i < a[t].size(); ++i)
      most = std::max<double>(most, std::abs(double{a[t][i]} - double{b[t][i]}));
  return most;
}

// Both sum in fp32, in different orders: 2^-24 per step, over some hundred steps, relative to sums of
// magnitudes that cancel, through a few layers.
constexpr double kTolerance = 2e-4;

class SlicedGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(SlicedGolden, ComputesWhatAPlainModelOfTheSameValuesDoes) {
  const std::string source = sluice::testing::kGoldenModels + "/" + GetParam();
  using Dense = store::DenseRounding;
  for (const auto& [bits, dense] :
       {std::pair(codec::SliceBits{8, 4}, Dense::kExact), std::pair(codec::SliceBits{6, 3}, Dense::kInt8),
        std::pair(codec::SliceBits{4, 2}, Dense::kExact), std::pair(codec::SliceBits{8, 4}, Dense::kInt8)}) {
    const TempDirectory scratch;
    pack_sliced(source, scratch / "m.sluice", bits, dense);
    const Opened sliced(scratch / "m.sluice");
    const auto tokens = random_tokens(24, sliced.model.config.vocab, bits.high);
    std::map<codec::SliceView, std::vector<std::vector<float>>> expected;
    for (const codec::SliceView which :
         {codec::SliceView::kHigh, codec::SliceView::kLow, codec::SliceView::kCenter}) {
      const TempDirectory plain;
      write_plain_model(source, sliced, which, plain.path());
      const Opened opened(plain.path());
      EngineOptions options = options_of(PrecisionMode::kFull);
      options.math = Math::kF32;
      Engine engine(*opened.checkpoint, opened.model, resolve(options, *opened.checkpoint, opened.model), 4);
      expected[which] = logits_of(engine, tokens, tokens.size());
    }
    const double scale = largest_of(expected[codec::SliceView::kHigh]);
    // The views differ from each other. (Activations are fp32: coding them costs more than another order of
    // sums.)
    EXPECT_GT(furthest(expected[codec::SliceView::kHigh], expected[codec::SliceView::kLow]), 0.01 * scale);
    EXPECT_GT(furthest(expected[codec::SliceView::kCenter], expected[codec::SliceView::kLow]), 0.01 * scale);
    const auto found = [&](PrecisionMode precision, std::size_t prompt,
                           codec::SliceView low = codec::SliceView::kLow) {
      EngineOptions options = options_of(precision);
      options.low_view = low;
      options.math = Math::kF32;
      options.activations = kernels::ActivationForm::kF32;
      Engine engine(*sliced.checkpoint, sliced.model, resolve(options, *sliced.checkpoint, sliced.model), 4);
      return logits_of(engine, tokens, prompt);
    };
    // Prompts are computed at high precision, whatever precision is asked for later.
    for (const PrecisionMode any : {PrecisionMode::kHigh, PrecisionMode::kLow, PrecisionMode::kDbsc})
      EXPECT_LT(furthest(found(any, tokens.size()), expected[codec::SliceView::kHigh]), kTolerance * scale);
    EXPECT_LT(furthest(found(PrecisionMode::kHigh, 0), expected[codec::SliceView::kHigh]),
              kTolerance * scale);
    for (const codec::SliceView low : {codec::SliceView::kLow, codec::SliceView::kCenter})
      EXPECT_LT(furthest(found(PrecisionMode::kLow, 0, low), expected[low]), kTolerance * scale);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SlicedGolden,
                         ::testing::Values("qwen2_moe_b", "deepseek_v2_a", "mixtral_a", "olmoe_a"),
                         [](const auto& info) { return info.param; });

// The bundled model in slices of 8 and 4 bits.
class Slices : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<TempDirectory>();
    pack_sliced(kFable, *scratch_ / "fable.sluice", {8, 4});
    fable_ = std::make_unique<Opened>(*scratch_ / "fable.sluice");
    tokens_ = random_tokens(60, fable_->model.config.vocab, 5);
  }
  static void TearDownTestSuite() {
    fable_.reset();
    scratch_.reset();
  }

  static std::unique_ptr<Engine> engine_of(const EngineOptions& options) {
    return std::make_unique<Engine>(*fable_->checkpoint, fable_->model,
                                    resolve(options, *fable_->checkpoint, fable_->model), 4);
  }
  static std::uint64_t bits_of(const EngineOptions& options) {
    const auto engine = engine_of(options);
    const std::uint64_t bits = bits_of(*engine);
    EXPECT_LE(engine->report().accountant.peak(), engine->report().accountant.budget());
    return bits;
  }
  static std::uint64_t bits_of(Engine& engine) {
    std::vector<float> all;
    for (const auto& row : logits_of(engine, tokens_, kPrompt)) all.insert(all.end(), row.begin(), row.end());
    return xxh3(std::as_bytes(std::span(all)));
  }
  // The smallest budget, and how much more half of the experts need.
  static std::pair<Bytes, Bytes> budgets(EngineOptions options) {
    const auto engine = engine_of(options);
    const Bytes both = engine->report().experts.sizes().bytes({0, 0}).of(kBoth);
    return {engine->report().memory.stated + kMiB,
            engine->report().memory.stated + kMiB + both * fable_->model.experts.size() / 2};
  }

  static constexpr std::size_t kPrompt = 20;
  static inline std::unique_ptr<TempDirectory> scratch_;
  static inline std::unique_ptr<Opened> fable_;
  static inline std::vector<tokenizer::TokenId> tokens_;
};

TEST_F(Slices, HighAndLowGiveTheSameBitsWhateverTheBudgetCacheThreadsAndDisk) {
  for (const PrecisionMode precision : {PrecisionMode::kHigh, PrecisionMode::kLow}) {
    SCOPED_TRACE(experts::precision_name(precision));
    const EngineOptions roomy = options_of(precision);
    const std::uint64_t expected = bits_of(roomy);
    const auto [least, half] = budgets(roomy);
    const auto expect_same = [&](const char* what, auto change) {
      EngineOptions options = roomy;
      change(options);
      EXPECT_EQ(bits_of(options), expected) << what;
    };
    expect_same("least budget", [&](EngineOptions& o) { o.memory = least; });
    expect_same("half", [&](EngineOptions& o) { o.memory = half; });
    expect_same("one thread", [&](EngineOptions& o) { o.memory = half, o.threads = 1; });
    expect_same("four threads", [&](EngineOptions& o) { o.memory = half, o.threads = 4; });
    expect_same("pread", [&](EngineOptions& o) {
      o.memory = half;
      o.fetch.disk.method = DiskMethod::kPread;
    });
    expect_same("mmap", [&](EngineOptions& o) {
      o.memory = half;
      o.fetch.io = fetch::IoMode::kMmap;
    });
    expect_same("synchronous", [&](EngineOptions& o) {
      o.memory = half;
      o.preset = "z-accelerate";
      o.cache = "lru";
    });
    expect_same("fifo", [&](EngineOptions& o) { o.memory = half, o.scheduler = "fifo"; });
    for (const char* cache : {"lru", "lfu", "none", "static", "marking"})
      expect_same(cache, [&](EngineOptions& o) { o.memory = half, o.cache = cache; });
    for (const experts::PrefetchPolicy& prefetch : experts::prefetch_policies())
      if (prefetch.needs == experts::PrefetchNeeds::kNothing)
        expect_same(prefetch.name.data(),
                    [&](EngineOptions& o) { o.memory = half, o.prefetch = prefetch.name; });
    expect_same("by layer", [&](EngineOptions& o) { o.memory = half, o.cache_scope = CacheScope::kLayer; });
    expect_same("empty", [&](EngineOptions& o) {
      o.memory = half;
      o.slices.initial = experts::InitialSlices::kEmpty;
    });
    expect_same("another chunk", [&](EngineOptions& o) { o.memory = half, o.chunk = 7; });
  }
}

// Critical experts are always computed high. Other experts are computed high where both slices are in memory,
// so the budget affects the logits (SPEC §4.3); nothing else does.
TEST_F(Slices, DbscGivesTheSameBitsAndDecisionsWhateverTheThreadsAndDisk) {
  for (const char* preset : {"auto", "slicemoe"}) {
    EngineOptions options = options_of(PrecisionMode::kDbsc);
    options.preset = preset;
    options.memory = budgets(options).second;
    const auto first = engine_of(options);
    const std::uint64_t expected = bits_of(*first);
    EXPECT_NE(expected, bits_of(options_of(PrecisionMode::kHigh)));
    EXPECT_NE(expected, bits_of(options_of(PrecisionMode::kLow)));
    for (const auto& [threads, method, prefetch] :
         {std::tuple(1u, DiskMethod::kAuto, "none"), std::tuple(4u, DiskMethod::kPread, "none"),
          std::tuple(2u, DiskMethod::kAuto, "stream"), std::tuple(3u, DiskMethod::kAuto, "all-next")}) {
      options.threads = threads;
      options.fetch.disk.method = method;
      options.prefetch = prefetch;
      const auto again = engine_of(options);
      if (again->report().cache_capacity() != first->report().cache_capacity())
        continue;  // the process has grown meanwhile
      EXPECT_EQ(bits_of(*again), expected);
      EXPECT_EQ(again->report().decision_hash(), first->report().decision_hash());
    }
  }
}

// Each form has bits of its own, equal for all instruction sets: integer sums have no order. The rounding is
// small.
TEST_F(Slices, CodedActivationsAreNearTheOthersAndTheirBitsAreTheSameEverywhere) {
  const TempDirectory scratch;
  pack_sliced(kFable, scratch / "int8.sluice", {8, 4}, store::DenseRounding::kInt8);
  const Opened int8(scratch / "int8.sluice");
  const auto logits = [&](kernels::ActivationForm form, const std::string& isa, unsigned threads,
                          std::size_t prompt) {
    EngineOptions options = options_of(PrecisionMode::kHigh);
    options.activations = form;
    options.isa = isa;
    options.threads = threads;
    Engine engine(*int8.checkpoint, int8.model, resolve(options, *int8.checkpoint, int8.model), 4);
    EXPECT_EQ(engine.plan().activations, form);
    return logits_of(engine, std::span(tokens_).first(24), prompt);
  };
  using Form = kernels::ActivationForm;
  const auto plain = logits(Form::kF32, "auto", 2, 24), coded = logits(Form::kInt8, "auto", 2, 24);
  EXPECT_NE(plain, coded);
  EXPECT_LT(furthest(plain, coded), 0.05 * largest_of(plain));
  EXPECT_EQ(coded, logits(Form::kInt8, "auto", 1, 7));
  for (const Isa isa : available_isas()) {
    if (kernels::rounded_products(isa) != kernels::rounded_products(best_isa())) continue;
    EXPECT_EQ(coded, logits(Form::kInt8, std::string(isa_name(isa)), 3, 0)) << isa_name(isa);
  }
}

// The embedding is also the output head: rows and products come from the same codes.
TEST_F(Slices, DenseWeightsOfEightBitsTakeHalfAndGiveTheSameBitsEverywhere) {
  const TempDirectory scratch;
  pack_sliced(kFable, scratch / "int8.sluice", {8, 4}, store::DenseRounding::kInt8);
  const Opened int8(scratch / "int8.sluice");
  std::vector<std::uint64_t> bits;
  Bytes dense = 0;
  for (const unsigned threads : {1u, 2u, 4u}) {
    EngineOptions options = options_of(PrecisionMode::kHigh);
    options.threads = threads;
    options.chunk = threads == 2 ? 16 : 5;
    Engine engine(*int8.checkpoint, int8.model, resolve(options, *int8.checkpoint, int8.model), threads);
    bits.push_back(bits_of(engine));
    dense = engine.report().memory.dense;
    EXPECT_EQ(engine.report().accountant.used(device::Account::kDense), dense);
  }
  EXPECT_EQ(bits, std::vector(3, bits[0]));
  EngineOptions words = options_of(PrecisionMode::kHigh);
  words.dense = DenseForm::kWords;
  EXPECT_LT(dense, 6 * engine_of(words)->report().memory.dense / 10);
}

TEST_F(Slices, AFailedReadFailsItsStepAndNoBitOfTheNext) {
  for (const PrecisionMode precision : {PrecisionMode::kHigh, PrecisionMode::kLow}) {
    const EngineOptions roomy = options_of(precision);
    const std::uint64_t expected = bits_of(roomy);
    std::atomic<bool> failing{false};
    std::atomic<unsigned> reads{0};
    std::atomic<int> kind{EIO};
    EngineOptions options = roomy;
    options.memory = budgets(roomy).second;
    options.fetch.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(
          std::move(inner), [&](const DiskRead&) { return failing && ++reads % 67 == 0 ? kind.load() : 0; });
    };
    const auto engine = engine_of(options);
    failing = true;
    std::size_t failures = 0;
    const auto retried = [&](const auto& work) {
      for (;;) {
        try {
          return work();
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), kind == EIO ? ErrorKind::kIo : ErrorKind::kCorrupt);
          EXPECT_NE(error.where().find("fable.sluice"), std::string::npos) << error.what();
          EXPECT_TRUE(error.offset().has_value());
          kind = kind == EIO ? ENODATA : EIO;
          ++failures;
        }
      }
    };
    const auto sequence = engine->new_sequence();
    std::vector<float> all;
    std::vector<float> prompt;
    retried([&] {
      sequence->clear();
      prompt.clear();
      engine->prefill(*sequence, std::span(tokens_).first(kPrompt),
                      {[](std::size_t) { return true; },
                       [&](std::size_t, std::span<const float> row) {
                         prompt.insert(prompt.end(), row.begin(), row.end());
                       }});
    });
    all = prompt;
    for (const tokenizer::TokenId token : std::span(tokens_).subspan(kPrompt))
      retried([&] {
        const auto row = engine->decode(*sequence, token);
        all.insert(all.end(), row.begin(), row.end());
      });
    EXPECT_EQ(xxh3(std::as_bytes(std::span(all))), expected);
    EXPECT_GT(failures, 1u);
  }
}

// Compares the decided residency with the actual one.
class Logical final : public RoutingObserver {
 public:
  void on_decisions(std::uint32_t /*layer*/, const experts::LayerDecision& decision) override {
    const experts::EventOutcome& outcome = *decision.outcome;
    for (const experts::Eviction& gone : outcome.evicted) held[gone.id] = held[gone.id] - gone.parts;
    for (const auto* used : {&outcome.hits, &outcome.misses})
      for (const experts::Admission& one : *used) {
        held[one.id] = one.parts;
        (one.view.has(Part::kLsb) ? high : low) += 1;
      }
  }
  std::map<experts::ExpertId, Parts> held;
  std::size_t high = 0, low = 0;
};

TEST_F(Slices, WhatIsInMemoryIsWhatWasDecided) {
  for (const char* preset : {"auto", "slicemoe"}) {
    EngineOptions options = options_of(PrecisionMode::kDbsc);
    options.preset = preset;
    options.memory = budgets(options).second;
    const auto engine = engine_of(options);
    Logical logical;
    engine->observe(&logical);
    const auto sequence = engine->new_sequence();
    const auto expect_agreement = [&] {
      Bytes resident = 0;
      for (const model::ExpertPieces& pieces : fable_->model.experts) {
        const experts::ExpertId id{static_cast<std::uint16_t>(pieces.layer),
                                   static_cast<std::uint16_t>(pieces.index)};
        ASSERT_EQ(engine->report().experts.parts(id), logical.held[id]) << id.layer << "/" << id.index;
        resident += engine->report().experts.sizes().bytes(id).of(engine->report().experts.parts(id));
      }
      EXPECT_EQ(engine->report().accountant.used(device::Account::kExperts), resident);
      EXPECT_LE(resident, engine->report().cache_capacity());
    };
    engine->prefill(*sequence, std::span(tokens_).first(kPrompt), {[](std::size_t) { return false; }, {}});
    expect_agreement();
    logical.high = logical.low = 0;
    for (const tokenizer::TokenId token : std::span(tokens_).subspan(kPrompt)) {
      engine->decode(*sequence, token);
      expect_agreement();
    }
    EXPECT_GT(logical.high, 0u);
    EXPECT_GT(logical.low, 0u);
    engine->observe(nullptr);
  }
}

TEST_F(Slices, ALimitOnMissesIsKept) {
  EngineOptions options = options_of(PrecisionMode::kDbsc);
  options.cache_bytes = 6 * kMiB;  // what a small budget leaves goes by how much of this program has run
  const auto rate = [&](ConstraintMode mode, std::uint64_t* replaced = nullptr) {
    EngineOptions limited = options;
    limited.preset = "slicemoe";
    limited.constraint = mode;
    limited.limits.limit = 0.05;
    if (mode == ConstraintMode::kNone) limited.router = "exact";
    const auto engine = engine_of(limited);
    logits_of(*engine, random_tokens(96, fable_->model.config.vocab, 8), kPrompt);
    const experts::MissAccount& account = engine->report().constraint()->account();
    if (replaced != nullptr) *replaced = engine->report().constraint()->replaced();
    EXPECT_GT(account.requested, 0);
    if (options.precision == PrecisionMode::kHigh) {
      EXPECT_EQ(account.downgrades, 0u);
    }
    EXPECT_EQ(engine->statistics().prefill.slices.downgrades, 0u);
    if (mode == ConstraintMode::kNone) {
      EXPECT_EQ(engine->report().decider.decode_changes().agreement(), 1);
    } else {
      EXPECT_LT(engine->report().decider.decode_changes().agreement(), 1);
    }
    return account.rate();
  };
  const double free = rate(ConstraintMode::kNone);
  std::uint64_t replaced = 0;
  EXPECT_GT(free, 0.06);
  EXPECT_LE(rate(ConstraintMode::kHard, &replaced), 0.05);
  EXPECT_GT(replaced, 0u);

  // Misses of whole experts are predicted as such.
  options.precision = PrecisionMode::kHigh;
  for (const char* cache : {"lru", "slice-lru"}) {
    options.cache = cache;
    EXPECT_GT(rate(ConstraintMode::kNone), 0.06);
    EXPECT_LE(rate(ConstraintMode::kHard, &replaced), 0.05);
    EXPECT_GT(replaced, 0u);
  }
}

std::string refusal(const auto& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_F(Slices, WhatMakesNoSenseIsRefusedWithTheReason) {
  const auto refused = [&](auto change) {
    EngineOptions options = options_of(PrecisionMode::kHigh);
    change(options);
    return refusal([&] { engine_of(options); });
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(refused([](EngineOptions& o) { o.precision = PrecisionMode::kFull; }),
              AllOf(HasSubstr("rounded"), HasSubstr("--precision"), HasSubstr("8/4 bits")));
  EXPECT_THAT(refused([](EngineOptions& o) { o.cache = "zip-pools"; }), HasSubstr("slices"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.preset = "zipmoe"; }), HasSubstr("slices"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.preset = "z-deepspeed"; }), HasSubstr("--preset"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.scheduler = "zip-affinity"; }), HasSubstr("--scheduler"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.keep = Keep::kPacked; }), HasSubstr("--keep"));
  EXPECT_THAT(refused([](EngineOptions& o) { o.constraint = ConstraintMode::kHard; }), HasSubstr("--router"));
  EXPECT_THAT(refused([](EngineOptions& o) {
                o.precision = PrecisionMode::kLow;
                o.rho = 0.5;
              }),
              HasSubstr("--rho"));
  EXPECT_THAT(refused([](EngineOptions& o) {
                o.math = Math::kF32;
                o.activations = kernels::ActivationForm::kInt8;
              }),
              AllOf(HasSubstr("--activations"), HasSubstr("--math")));
  EXPECT_THAT(refused([](EngineOptions& o) { o.memory = 7 * kMiB; }),
              AllOf(HasSubstr("too small"), HasSubstr("--memory")));
  const auto engine = engine_of(options_of(PrecisionMode::kHigh));
  EXPECT_THAT(refusal([&] { engine->measure({}); }), HasSubstr("slices"));

  const Opened plain(kFable);
  EXPECT_THAT(refusal([&] {
                Engine(*plain.checkpoint, plain.model,
                       resolve(options_of(PrecisionMode::kHigh), *plain.checkpoint, plain.model), 1);
              }),
              HasSubstr("only experts in slices"));
}

}  // namespace
}  // namespace sluice::engine
