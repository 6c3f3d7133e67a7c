// The fetch executor under a whole engine: four threads, room for few experts, random evictions, and reads
// that fail now and then. Every logit must equal that of a run with unlimited memory, bit for bit. Meant
// mainly for ThreadSanitizer, where it is long.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/forward/common/measure_profile.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "model/pack_plan.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::fetch_stress_test {
namespace {

const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

// SLUICE_STRESS_TOKENS sets the number; default: many where races are looked for, few elsewhere.
std::size_t stress_tokens() {
  if (const char* text = std::getenv("SLUICE_STRESS_TOKENS")) return std::stoul(text);
#if defined(__SANITIZE_THREAD__)
  return 2000;
#else
  return 200;
#endif
}

// Short sequences of random tokens: the next experts are as hard to foresee as possible.
struct Text {
  std::size_t prompt;
  std::vector<tokenizer::TokenId> tokens;
};

std::vector<Text> random_texts(std::size_t tokens, std::uint32_t vocab, std::mt19937_64& random) {
  std::vector<Text> texts;
  while (tokens > 0) {
    Text text{1 + random() % 6,
              std::vector<tokenizer::TokenId>(std::min<std::size_t>(tokens, 8 + random() % 17))};
    text.prompt = std::min(text.prompt, text.tokens.size());
    for (tokenizer::TokenId& token : text.tokens) token = static_cast<tokenizer::TokenId>(random() % vocab);
    tokens -= text.tokens.size();
    texts.push_back(std::move(text));
  }
  return texts;
}

class FetchStress : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSeed = 20260121;

  static void SetUpTestSuite() {
    scratch_ = std::make_unique<sluice::testing::ScratchDirectory>();
    store::PackOptions pack;
    pack.codec = "lz4";
    pack.chunks = 3;
    store::pack(kModel, scratch_->file("fable.sluice"), model::pack_plan(*store::open_checkpoint(kModel)),
                pack);
    checkpoint_ = store::open_checkpoint(scratch_->file("fable.sluice"));
    model_ = std::make_unique<model::Model>(model::describe_model(*checkpoint_));
    std::mt19937_64 random(kSeed);
    texts_ = random_texts(stress_tokens(), model_->config.vocab, random);

    EngineOptions roomy = options("lru");
    roomy.threads = 1;
    roomy.memory = std::nullopt;
    Engine engine(*checkpoint_, *model_, resolve(roomy, *checkpoint_, *model_));
    expected_ = hashes(engine);
    ASSERT_LE(engine.statistics().total().misses, model_->experts.size()) << "something was evicted";
  }
  static void TearDownTestSuite() {
    model_.reset();
    checkpoint_.reset();
    scratch_.reset();
  }

  static EngineOptions options(const std::string& cache) {
    EngineOptions options;
    options.threads = 4;
    options.positions = 32;
    options.chunk = 4;
    options.cache = cache;
    options.seed = kSeed;
    options.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
    return options;
  }

  // Hashes of the logits after the prompt of every text, and after each token that follows. Repeats a step
  // whose reads failed.
  static std::vector<std::uint64_t> hashes(Engine& engine) {
    std::vector<std::uint64_t> all;
    const auto take = [&](std::span<const float> logits) { all.push_back(xxh3(std::as_bytes(logits))); };
    const auto sequence = engine.new_sequence();
    for (const Text& text : texts_) {
      const std::span<const tokenizer::TokenId> tokens = text.tokens;
      retried([&] {
        sequence->clear();
        engine.prefill(*sequence, tokens.first(text.prompt),
                       {[&](std::size_t t) { return t + 1 == text.prompt; },
                        [&](std::size_t, std::span<const float> row) { take(row); }});
      });
      for (const tokenizer::TokenId token : tokens.subspan(text.prompt))
        retried([&] { take(engine.decode(*sequence, token)); });
    }
    return all;
  }

  template <typename Work>
  static void retried(const Work& work) {
    for (;;) {
      try {
        return work();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kIo || !faults_) throw;
        ++failed_steps_;
      }
    }
  }

  // Runs the texts with room for a few experts, and returns the states in which experts were found: F, C, S,
  // E, M.
  std::array<std::uint64_t, 5> run(EngineOptions options) {
    Bytes minimum = 0, expert = 0;
    {
      EngineOptions plain = options;
      plain.preset = "auto";
      plain.cache = "lru";
      Engine engine(*checkpoint_, *model_, resolve(plain, *checkpoint_, *model_));
      minimum = engine.report().memory.minimum;
      expert = engine.report().experts.sizes().bytes({0, 0}).of(experts::Part::kFull);
      options.profile = made_up_costs(engine);
    }
    // A layer of a step wants 4 of 64 experts; and our own heap grows.
    options.memory = minimum + 24 * expert + 1 * kMiB;
    std::atomic<bool> failing{false};
    std::atomic<unsigned> reads{0};
    options.fetch.wrap_reader = [&](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner),
                                [&](const DiskRead&) { return failing && ++reads % 499 == 0 ? EIO : 0; });
    };
    Engine engine(*checkpoint_, *model_, resolve(options, *checkpoint_, *model_));
    failed_steps_ = 0;
    failing = faults_ = true;
    EXPECT_EQ(hashes(engine), expected_) << "seed " << kSeed;
    faults_ = false;
    EXPECT_GT(failed_steps_, 0u);
    EXPECT_LE(engine.report().accountant.peak(), engine.report().accountant.budget());
    EXPECT_GT(engine.statistics().total().misses, model_->experts.size())
        << "experts came back after they were evicted";
    return engine.statistics().total().found;
  }

  // A profile that names this machine. Its costs are invented, so that plans are the same everywhere.
  static Profile made_up_costs(Engine& engine) {
    Profile profile = engine.measure({.repeats = 1, .seed = 0, .sample_bytes = 1 * kMiB});
    profile.u = {40e-6, 0};
    profile.v = {15e-6, 0};
    profile.c = {60e-6, 0};
    profile.merge = {10e-6, 0};
    profile.p = {30e-6, 0};
    profile.p_of_tokens.clear();
    return profile;
  }

  static inline std::unique_ptr<sluice::testing::ScratchDirectory> scratch_;
  static inline std::unique_ptr<store::Checkpoint> checkpoint_;
  static inline std::unique_ptr<model::Model> model_;
  static inline std::vector<Text> texts_;
  static inline std::vector<std::uint64_t> expected_;
  static inline std::size_t failed_steps_ = 0;
  static inline bool faults_ = false;
};

TEST_F(FetchStress, PoolsOfEveryStateNeverShowInTheLogits) {
  EngineOptions pools = options("zip-pools");
  pools.preset = "z-C";  // equal shares: every state holds experts
  const auto found = run(pools);
  for (const std::uint64_t accesses : found) EXPECT_GT(accesses, 0u);
}

TEST_F(FetchStress, PlannedPoolsNeverShowInTheLogits) {
  EngineOptions pools = options("zip-pools");
  pools.preset = "zipmoe";
  run(pools);
}

TEST_F(FetchStress, RandomEvictionsNeverShowInTheLogits) {
  EngineOptions marking = options("marking");
  marking.preset = "z-basic-marking";
  marking.fetch.disk.method = DiskMethod::kPread;
  run(marking);
}

}  // namespace
}  // namespace sluice::engine::fetch_stress_test
