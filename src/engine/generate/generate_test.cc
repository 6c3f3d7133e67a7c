// What ends a generation, and what the engine is then good for.
#include "engine/generate/generate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/watch/statistics.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

class GenerateTest : public ::testing::Test {
 protected:
  static EngineOptions options() {
    EngineOptions options;
    options.threads = 2;
    options.positions = 24;
    options.sequences = 2;
    options.fetch.io = fetch::IoMode::kBuffered;
    return options;
  }
  static GenerateRequest request(std::size_t tokens) {
    GenerateRequest request;
    request.prompt = {17, 4, 256, 33, 9};
    request.max_tokens = tokens;
    request.ignore_eos = true;
    return request;
  }

  const std::unique_ptr<store::Checkpoint> checkpoint_ =
      store::open_checkpoint(SLUICE_SOURCE_DIR "/models/fable-moe-18m");
  const model::Model model_ = model::describe_model(*checkpoint_);
  Engine engine_{*checkpoint_, model_, resolve(options(), *checkpoint_, model_)};
};

// The last token of an answer needs no position: 24 hold a prompt of 5 and an answer of 20.
TEST_F(GenerateTest, AFullContextIsNotTheLengthThatWasAskedFor) {
  const GenerateResult asked = generate(engine_, nullptr, request(20));
  EXPECT_EQ(asked.tokens.size(), 20u);
  EXPECT_EQ(asked.reason, StopReason::kLength);
  const GenerateResult full = generate(engine_, nullptr, request(21));
  EXPECT_EQ(full.tokens, asked.tokens);
  EXPECT_EQ(full.reason, StopReason::kContext);
  EXPECT_EQ(stop_reason_name(full.reason), "context");
  const std::vector<GenerateResult> both =
      generate(engine_, nullptr, std::vector<GenerateRequest>{request(3), request(1000)});
  EXPECT_EQ(both[0].reason, StopReason::kLength);
  EXPECT_EQ(both[1].reason, StopReason::kContext);
}

struct ReaderGone {};

TEST_F(GenerateTest, WhatItsTextThrowsEndsItAtThatToken) {
  const std::vector<tokenizer::TokenId> expected = generate(engine_, nullptr, request(12)).tokens;
  for (const std::size_t last : {1u, 2u, 7u}) {
    GenerateRequest broken = request(12);
    std::size_t given = 0;
    broken.on_text = [&](const std::string&, std::size_t tokens) {
      given = tokens;
      if (tokens == last) throw ReaderGone();
    };
    const std::uint64_t steps = engine_.statistics().total().steps;
    EXPECT_THROW(generate(engine_, nullptr, broken), ReaderGone);
    EXPECT_EQ(given, last);
    EXPECT_LE(engine_.statistics().total().steps - steps, last);  // the prompt's and those of the tokens
    EXPECT_EQ(generate(engine_, nullptr, request(12)).tokens, expected) << "after " << last;
  }
}

TEST_F(GenerateTest, WhatIsThrownWhenAskedToStopComesOut) {
  const std::vector<tokenizer::TokenId> expected = generate(engine_, nullptr, request(12)).tokens;
  for (const int call : {1, 2, 5}) {
    GenerateRequest broken = request(12);
    int calls = 0;
    broken.should_stop = [&]() -> bool {
      if (++calls == call) throw ReaderGone();
      return false;
    };
    EXPECT_THROW(generate(engine_, nullptr, broken), ReaderGone);
    EXPECT_EQ(calls, call);
    EXPECT_EQ(generate(engine_, nullptr, request(12)).tokens, expected);
  }
}

// A chunk may take seconds, so a prompt stops in front of any layer, and is then fed as if nothing had been.
TEST_F(GenerateTest, APromptStopsAtAnyLayerOfAnyChunk) {
  const std::vector<tokenizer::TokenId> tokens = request(1).prompt;
  std::vector<float> expected, logits;
  const LogitSink sink{
      [&](std::size_t t) { return t + 1 == tokens.size(); },
      [&](std::size_t, std::span<const float> row) { logits.assign(row.begin(), row.end()); }};
  const auto sequence = engine_.new_sequence();
  EXPECT_EQ(engine_.prefill(*sequence, tokens, sink), tokens.size());
  expected.swap(logits);
  for (std::size_t layer = 0; layer < model_.config.layers; ++layer) {
    sequence->clear();
    std::size_t asked = 0;
    EXPECT_EQ(engine_.prefill(*sequence, tokens, sink, [&] { return asked++ < layer; }), 0u);
    EXPECT_EQ(asked, layer + 1);
    EXPECT_EQ(sequence->length(), 0u);
    EXPECT_TRUE(logits.empty());
    EXPECT_EQ(engine_.prefill(*sequence, tokens, sink, [] { return true; }), tokens.size());
    EXPECT_EQ(logits, expected);
    logits.clear();
  }
}

}  // namespace
}  // namespace sluice::engine
