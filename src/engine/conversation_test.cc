// A conversation computes only what is new of a prompt, and answers as if it had computed all of it.
#include "engine/conversation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/watch/statistics.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

using Tokens = std::vector<tokenizer::TokenId>;

class ConversationTest : public ::testing::Test {
 protected:
  explicit ConversationTest(const std::string& path = SLUICE_SOURCE_DIR "/models/fable-moe-18m")
      : checkpoint_(store::open_checkpoint(path)) {
    EngineOptions options;
    options.threads = 2;
    options.positions = 96;
    options.sequences = 2;
    options.chunk = 16;
    options.draws = true;
    options.fetch.io = fetch::IoMode::kBuffered;
    engine_ = std::make_unique<Engine>(*checkpoint_, model_, resolve(options, *checkpoint_, model_));
  }

  static GenerateRequest request(Tokens prompt, std::size_t tokens, std::uint64_t seed) {
    GenerateRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    request.ignore_eos = true;
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
TEST_F(ConversationTest, GivesTheTokensThatEachPromptGetsAlone) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Conversation conversation(*engine_);
    Tokens held;
    for (int turn = 0; turn < 5; ++turn) {
      Tokens prompt(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(random() % (held.size() + 1)));
      if (prompt.size() > 60) prompt.resize(60);
      const std::size_t alike = prompt.size();
      const Tokens further = random_tokens(random, random() % 20);
      prompt.insert(prompt.end(), further.begin(), further.end());
      if (prompt.empty()) prompt = {5};
      const GenerateRequest one = request(prompt, random() % 12, seed + static_cast<std::uint64_t>(turn));
      const GenerateResult result = conversation.generate(nullptr, one);
      const GenerateResult alone = generate(*engine_, nullptr, one);
      EXPECT_EQ(result.tokens, alone.tokens);
      EXPECT_EQ(result.reason, alone.reason);
      EXPECT_GE(result.kept, std::min(alike, prompt.size() - 1));
      EXPECT_LT(result.kept, prompt.size());
      EXPECT_EQ(alone.kept, 0u);
      if (one.max_tokens == 0) {  // then nothing of the prompt was computed
        held.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(result.kept));
        continue;
      }
      held = prompt;
      held.insert(held.end(), result.tokens.begin(), result.tokens.end() - 1);
    }
  }
}

TEST_F(ConversationTest, ComputesTheLastTokenAlone) {
  std::mt19937_64 random(1);
  const GenerateRequest one = request(random_tokens(random, 60), 1, 0);
  Conversation conversation(*engine_);
  const Tokens first = conversation.generate(nullptr, one).tokens;
  const std::uint64_t before = steps();
  const GenerateResult again = conversation.generate(nullptr, one);
  EXPECT_EQ(again.tokens, first);
  EXPECT_EQ(again.kept, 59u);
  EXPECT_EQ(steps() - before, 1u);
}

// What an interrupt leaves is a part of the prompt, and the next answer is right.
TEST_F(ConversationTest, GoesOnBehindAnInterrupt) {
  std::mt19937_64 random(2);
  GenerateRequest one = request(random_tokens(random, 60), 10, 1);
  const Tokens expected = generate(*engine_, nullptr, one).tokens;
  std::size_t most_kept = 0;
  for (int stop_at = 0; stop_at < 60; stop_at += 3) {
    SCOPED_TRACE("stopped at question " + std::to_string(stop_at));
    Conversation conversation(*engine_);
    int asked = 0;
    one.should_stop = [&] { return asked++ == stop_at; };
    const GenerateResult stopped = conversation.generate(nullptr, one);
    if (stopped.reason == StopReason::kInterrupted) {
      EXPECT_LT(stopped.tokens.size(), 10u);
    }
    one.should_stop = nullptr;
    const GenerateResult result = conversation.generate(nullptr, one);
    EXPECT_EQ(result.tokens, expected);
    most_kept = std::max(most_kept, result.kept);
  }
  EXPECT_EQ(most_kept, 59u);
}

TEST_F(ConversationTest, KeepsWhatItHasBehindARefusedPrompt) {
  std::mt19937_64 random(3);
  const GenerateRequest one = request(random_tokens(random, 40), 4, 0);
  Conversation conversation(*engine_);
  const Tokens expected = conversation.generate(nullptr, one).tokens;
  EXPECT_THROW(conversation.generate(nullptr, request(random_tokens(random, 97), 4, 0)), Error);
  EXPECT_THROW(conversation.generate(nullptr, request({}, 4, 0)), Error);
  const GenerateResult again = conversation.generate(nullptr, one);
  EXPECT_EQ(again.tokens, expected);
  EXPECT_EQ(again.kept, 39u);
}

class EncoderConversation : public ConversationTest {
 protected:
  EncoderConversation() : ConversationTest(sluice::testing::kGoldenModels + "/switch_transformers_a") {}
};

TEST_F(EncoderConversation, IsRefused) { EXPECT_THROW(Conversation conversation(*engine_), Error); }

}  // namespace
}  // namespace sluice::engine
