// Where a prompt begins as one before it did, only what is new is computed, and the answer is as if all had
// been.
#include "engine/generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/session/prefix_cache.h"
#include "engine/watch/statistics.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

using Tokens = std::vector<tokenizer::TokenId>;

class KeptPrompts : public ::testing::Test {
 protected:
  explicit KeptPrompts(const std::string& path = SLUICE_SOURCE_DIR "/models/fable-moe-18m")
      : checkpoint_(store::open_checkpoint(path)) {
    EngineOptions options;
    options.threads = 2;
    options.positions = 96;
    options.sequences = 2;
    options.chunk = 16;
    options.draws = true;
    options.encoder_positions = model_.config.has_encoder() ? 16 : 0;
    options.fetch.io = fetch::IoMode::kBuffered;
    engine_ = std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
  }

  static GenerateRequest request(Tokens prompt, std::size_t tokens, std::uint64_t seed) {
    GenerateRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.keep = true;
    request.sampler.temperature = seed % 2 == 0 ? 0.0 : 0.9;
    request.sampler.seed = seed;
    return request;
  }
  Tokens random_tokens(std::mt19937_64& random, std::size_t count) const {
    Tokens tokens(count);
    for (tokenizer::TokenId& token : tokens)
      token = static_cast<tokenizer::TokenId>(random() % model_.config.vocab);
    return tokens;
  }
  std::uint64_t steps() const { return engine_->statistics().total().steps; }

  const std::unique_ptr<store::Checkpoint> checkpoint_;
  const model::Model model_ = model::describe_model(*checkpoint_);
  std::unique_ptr<Engine> engine_;
};

// Each prompt goes on from a cut of the last prompt and its answer.
TEST_F(KeptPrompts, GivesTheTokensThatEachPromptGetsAlone) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Tokens held;
    for (int turn = 0; turn < 5; ++turn) {
      Tokens prompt(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(random() % (held.size() + 1)));
      if (prompt.size() > 60) prompt.resize(60);
      const std::size_t alike = prompt.size();
      const Tokens further = random_tokens(random, random() % 20);
      prompt.insert(prompt.end(), further.begin(), further.end());
      if (prompt.empty()) prompt = {5};
      const GenerateRequest one = request(prompt, random() % 12, seed + static_cast<std::uint64_t>(turn));
      const GenerateResult result = generate(*engine_, nullptr, one);
      GenerateRequest afresh = one;
      afresh.keep = false;
      const GenerateResult alone = generate(*engine_, nullptr, afresh);
      EXPECT_EQ(result.tokens, alone.tokens);
      EXPECT_EQ(result.reason, alone.reason);
      EXPECT_EQ(alone.statistics.cached, 0u);
      if (one.max_tokens == 0) continue;  // then nothing of the prompt was computed
      EXPECT_GE(result.statistics.cached, std::min(alike, prompt.size() - 1));
      EXPECT_LT(result.statistics.cached, prompt.size());
      held = prompt;
      held.insert(held.end(), result.tokens.begin(), result.tokens.end() - 1);
    }
  }
}

TEST_F(KeptPrompts, ComputesTheLastTokenAlone) {
  std::mt19937_64 random(1);
  const GenerateRequest one = request(random_tokens(random, 60), 1, 0);
  const Tokens first = generate(*engine_, nullptr, one).tokens;
  const std::uint64_t before = steps();
  const GenerateResult again = generate(*engine_, nullptr, one);
  EXPECT_EQ(again.tokens, first);
  EXPECT_EQ(again.statistics.cached, 59u);
  EXPECT_EQ(steps() - before, 1u);
}

// What an interrupt leaves is a part of the prompt, and the next answer is right.
TEST_F(KeptPrompts, GoesOnBehindAnInterrupt) {
  std::mt19937_64 random(2);
  std::size_t in_part = 0, whole = 0;
  for (int stop_at = 0; stop_at < 60; stop_at += 3) {
    SCOPED_TRACE("stopped at question " + std::to_string(stop_at));
    GenerateRequest one = request(random_tokens(random, 60), 10, 1);
    int asked = 0;
    one.should_stop = [&] { return asked++ == stop_at; };
    const GenerateResult stopped = generate(*engine_, nullptr, one);
    if (stopped.reason == StopReason::kInterrupted) {
      EXPECT_LT(stopped.tokens.size(), 10u);
    }
    one.should_stop = nullptr;
    const GenerateResult result = generate(*engine_, nullptr, one);
    one.keep = false;
    EXPECT_EQ(result.tokens, generate(*engine_, nullptr, one).tokens);
    const std::size_t cached = result.statistics.cached;
    EXPECT_TRUE(cached % 16 == 0 || cached == 59) << cached;  // whole chunks
    in_part += cached > 0 && cached < 59;
    whole += cached == 59;
  }
  EXPECT_GT(in_part, 0u);
  EXPECT_GT(whole, 0u);
}

TEST_F(KeptPrompts, KeepsWhatItHasBehindARefusedPrompt) {
  std::mt19937_64 random(3);
  const GenerateRequest one = request(random_tokens(random, 40), 4, 0);
  const Tokens expected = generate(*engine_, nullptr, one).tokens;
  EXPECT_THROW(generate(*engine_, nullptr, request(random_tokens(random, 97), 4, 0)), Error);
  EXPECT_THROW(generate(*engine_, nullptr, request({}, 4, 0)), Error);
  const GenerateResult again = generate(*engine_, nullptr, one);
  EXPECT_EQ(again.tokens, expected);
  EXPECT_EQ(again.statistics.cached, 39u);
}

TEST_F(KeptPrompts, FindNothingOfOneThatWasNotToBeKept) {
  std::mt19937_64 random(4);
  GenerateRequest one = request(random_tokens(random, 40), 4, 0);
  one.keep = false;
  const Tokens expected = generate(*engine_, nullptr, one).tokens;
  EXPECT_EQ(engine_->prefixes().find(one.prompt), 0u);
  one.keep = true;
  for (const std::size_t cached : {0u, 39u}) {
    const GenerateResult result = generate(*engine_, nullptr, one);
    EXPECT_EQ(result.tokens, expected);
    EXPECT_EQ(result.statistics.cached, cached);
  }
}

class KeptEncoderPrompts : public KeptPrompts {
 protected:
  KeptEncoderPrompts() : KeptPrompts(sluice::testing::kGoldenModels + "/switch_transformers_a") {}
};

TEST_F(KeptEncoderPrompts, KeepNothing) {
  const GenerateRequest one = request({5, 9, 12, 3}, 4, 0);
  const Tokens expected = generate(*engine_, nullptr, one).tokens;
  const GenerateResult again = generate(*engine_, nullptr, one);
  EXPECT_EQ(again.tokens, expected);
  EXPECT_EQ(again.statistics.cached, 0u);
}

}  // namespace
}  // namespace sluice::engine
