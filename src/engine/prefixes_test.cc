// Sequences that go on from what others have computed have the logits that they have alone, bit for bit:
// whole blocks and parts of them, of running sequences and of ended ones, grown and behind evictions, on the
// host and on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "engine/engine.h"
#include "engine/forward/pass.h"
#include "engine/run_report.h"
#include "engine/session/prefix_cache.h"
#include "kernels/attention/attention.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

using Text = std::vector<tokenizer::TokenId>;
constexpr std::size_t kContext = 120, kPool = 12 * kernels::kCacheBlock, kRunning = 4;

std::uint64_t seed_of_run() {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

// Hashes of the logits behind each of a text's tokens.
using Hashes = std::vector<std::uint64_t>;

struct Met {
  std::size_t full = 0, parts = 0, of_running = 0, grown = 0, evicted = 0, refused = 0, suspended = 0;
};

class Shared {
 public:
  Shared(Engine& engine, Engine& alone, std::mt19937_64& random, Met& met)
      : engine_(engine), alone_(alone), random_(random), met_(met) {
    for (int i = 0; i < 5; ++i) add_text();
  }

  void run(int turns) {
    for (int turn = 0; turn < turns && !::testing::Test::HasFailure(); ++turn) {
      if (running_.empty() || (running_.size() < kRunning && random_() % 3 == 0))
        begin();
      else
        go_on();
    }
    running_.clear();
    EXPECT_EQ(engine_.prefixes().use().used, 0u);
  }

 private:
  struct Request {
    std::unique_ptr<Sequence> sequence;
    std::size_t text = 0;
  };
  struct Known {
    Text tokens;
    Hashes alone;
  };

  // Begins as an earlier one does, for the most part.
  void add_text() {
    Known one;
    if (!texts_.empty() && random_() % 4 != 0) {
      const Text& earlier = texts_[random_() % texts_.size()].tokens;
      one.tokens.assign(earlier.begin(),
                        earlier.begin() + static_cast<std::ptrdiff_t>(random_() % earlier.size()));
    }
    const std::size_t length =
        std::min(kContext, one.tokens.size() + 1 + random_() % (random_() % 2 == 0 ? 10 : 80));
    while (one.tokens.size() < length)
      one.tokens.push_back(static_cast<tokenizer::TokenId>(random_() % engine_.model().config.vocab));
    const auto sequence = alone_.new_sequence();
    alone_.prefill(
        *sequence, one.tokens,
        {[](std::size_t) { return true; },
         [&](std::size_t, std::span<const float> row) { one.alone.push_back(xxh3(std::as_bytes(row))); }});
    texts_.push_back(std::move(one));
  }

  void begin() {
    if (random_() % 3 == 0) add_text();
    const std::size_t at = random_() % texts_.size();
    const Text& text = texts_[at].tokens;
    const std::size_t prompt = 1 + random_() % text.size();
    const std::size_t positions = prompt + random_() % (text.size() - prompt + 1);
    const std::size_t cached = engine_.prefixes().use().cached;
    const std::size_t found = engine_.prefixes().find(std::span(text).first(prompt));
    Request request{engine_.prefixes().begin(std::span(text).first(prompt), positions), at};
    if (request.sequence == nullptr) {
      ++met_.refused;
      return;
    }
    const std::size_t length = request.sequence->length();
    EXPECT_EQ(length, found);
    met_.full += length / kernels::kCacheBlock;
    met_.parts += length % kernels::kCacheBlock != 0 ? 1 : 0;
    met_.of_running += std::ranges::any_of(running_, [&](const Request& one) {
      const Text& other = texts_[one.text].tokens;
      return length != 0 && one.sequence->shared_tokens() >= length &&
             std::equal(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), other.begin());
    });
    const std::size_t adopted = length / kernels::kCacheBlock;
    met_.evicted += engine_.prefixes().use().cached + adopted < cached ? 1 : 0;
    running_.push_back(std::move(request));
  }

  void go_on() {
    const auto one = std::next(running_.begin(), static_cast<std::ptrdiff_t>(random_() % running_.size()));
    Sequence& sequence = *one->sequence;
    const Text& tokens = texts_[one->text].tokens;
    if (sequence.length() == tokens.size() || random_() % 8 == 0) {
      running_.erase(one);
      return;
    }
    if (sequence.length() == sequence.positions() && !grow(*one)) {
      running_.erase(one);
      return;
    }
    if (random_() % 3 == 0)
      compute_beside_others(*one);
    else
      compute(*one);
  }

  bool grow(Request& one) {
    const std::size_t length = one.sequence->positions();
    const std::size_t more = 1 + random_() % (texts_[one.text].tokens.size() - length);
    const bool grown = engine_.prefixes().grow(*one.sequence, length + more);
    met_.grown += grown ? 1 : 0;
    return grown;
  }

  // Some tokens of the text that are not computed yet.
  std::span<const tokenizer::TokenId> next_of(const Request& one) {
    const std::size_t length = one.sequence->length();
    const std::size_t room = std::min(one.sequence->positions() - length, engine_.chunk());
    return std::span(texts_[one.text].tokens).subspan(length, 1 + random_() % room);
  }

  LogitSink comparing(const Request& one) {
    return {
        [](std::size_t) { return true; },
        [this, text = one.text, length = one.sequence->length()](std::size_t t, std::span<const float> row) {
          EXPECT_EQ(xxh3(std::as_bytes(row)), texts_[text].alone[length + t])
              << "text " << text << ", position " << length + t;
        }};
  }

  void share(Request& one) {
    if (random_() % 4 != 0) engine_.prefixes().share(*one.sequence, texts_[one.text].tokens);
  }

  void compute(Request& one) {
    engine_.prefill(*one.sequence, next_of(one), comparing(one));
    share(one);
  }

  // While its pass is suspended, others begin and go on, and it grows.
  void compute_beside_others(Request& one) {
    const std::span<const tokenizer::TokenId> next = next_of(one);
    const Text tokens(next.begin(), next.end());
    const SequenceSpan span{one.sequence.get(), 0, tokens.size(), StepKind::kPrompt,
                            one.sequence->length() == 0};
    Pass pass = engine_.begin({tokens, {&span, 1}});
    pass.advance(random_() % (engine_.model().config.layers + 1));
    if (running_.size() < kRunning) begin();
    for (Request& other : running_)
      if (&other != &one && other.sequence->length() < other.sequence->positions()) compute(other);
    if (one.sequence->positions() < texts_[one.text].tokens.size()) grow(one);
    pass.finish(comparing(one));
    ++met_.suspended;
    share(one);
  }

  Engine& engine_;
  Engine& alone_;
  std::mt19937_64& random_;
  Met& met_;
  std::vector<Known> texts_;
  std::list<Request> running_;
};

EngineOptions options_of(DType kv) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.positions = kContext;
  options.encoder_positions = 16;
  options.chunk = 40;
  options.kv = kv;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

class Prefixes : public ::testing::TestWithParam<std::string> {
 protected:
  Prefixes()
      : checkpoint_(store::open_checkpoint(std::string(sluice::testing::kGoldenModels) + "/" + GetParam())),
        model_(model::describe_model(*checkpoint_)) {}

  const std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_;
};

TEST_P(Prefixes, SequencesHaveTheLogitsThatTheyHaveAlone) {
  if (model_.config.has_encoder()) GTEST_SKIP() << "nothing is reused";
  Met met;
  for (const DType kv : {DType::kBF16, DType::kF32, DType::kI8})
    for (const bool device : {false, true}) {
      const std::uint64_t seed = seed_of_run();
      SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed) + ", " + std::string(dtype_name(kv)) +
                   (device ? ", on a device" : ""));
      std::cout << dtype_name(kv) << (device ? ", on a device" : "") << ": SLUICE_TEST_SEED=" << seed << '\n';
      std::mt19937_64 random(seed);
      EngineOptions options = options_of(kv);
      Engine alone(*checkpoint_, model_, resolve(options, *checkpoint_, model_), 1);
      options.sequences = kRunning;
      options.kv_tokens = kPool;
      options.suspended_passes = 1;
      if (device) {
        options.device = "emulated:link=inf,compute=inf,latency=0us";
        options.device_slots = 1;
        options.dense_on = DenseOn::kDevice;
        options.prefetch = "none";  // what is copied ahead is no matter of this test
      }
      Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_), 1);
      ASSERT_EQ(device, engine.report().accountant.used(device::Account::kKv) == 0);
      Shared(engine, alone, random, met).run(120);
      if (::testing::Test::HasFailure()) return;
    }
  EXPECT_GT(met.full, 0u);
  EXPECT_GT(met.parts, 0u);
  EXPECT_GT(met.of_running, 0u);
  EXPECT_GT(met.grown, 0u);
  EXPECT_GT(met.evicted, 0u);
  EXPECT_GT(met.suspended, 0u);
}

// An encoder-decoder's keys and values are of its encoder's input, too.
TEST_P(Prefixes, AnEncoderDecoderFindsNothing) {
  EngineOptions options = options_of(DType::kBF16);
  Engine engine(*checkpoint_, model_, resolve(options, *checkpoint_, model_), 1);
  const Text text(50, 3);
  auto sequence = engine.prefixes().begin(text, 60);
  ASSERT_NE(sequence, nullptr);
  if (model_.config.has_encoder()) engine.encode(*sequence, Text{1, 2, 3});
  engine.prefill(*sequence, text, {[](std::size_t) { return false; }, {}});
  engine.prefixes().share(*sequence, text);
  EXPECT_EQ(engine.prefixes().find(text), model_.config.has_encoder() ? 0u : 49u);
  sequence.reset();
  EXPECT_EQ(engine.prefixes().use().cached, model_.config.has_encoder() ? 0u : 2u);
  // Cached blocks are taken for those who find nothing.
  const auto fixed = engine.new_sequence();
  EXPECT_EQ(fixed->positions(), kContext);
  EXPECT_EQ(engine.prefixes().use().cached, 0u);
}

INSTANTIATE_TEST_SUITE_P(AllModels, Prefixes, ::testing::ValuesIn(sluice::testing::golden_model_names()));

}  // namespace
}  // namespace sluice::engine
