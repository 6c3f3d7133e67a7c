// One request, several, and what can happen to each.
#include "engine/batch/batcher.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "engine/batch/batch_testing.h"
#include "engine/watch/statistics.h"

namespace sluice::engine {
namespace {

using tokenizer::TokenId;

using BatcherTest = BatcherFixture;

TEST_F(BatcherTest, OneRequestGetsWhatGenerateGives) {
  make(1, 16);
  const BatchRequest request = request_of(prompt_of(40), 9);
  const KeepingClient& client = submit(request);
  run();
  const AloneAnswer expected = alone(request);
  EXPECT_EQ(client.tokens, expected.tokens);
  EXPECT_EQ(client.logits, expected.logits);
  EXPECT_EQ(client.end->reason, StopReason::kLength);
  EXPECT_EQ(client.prefilled, (std::vector<std::size_t>{16, 32, 40}));
  const RequestStatistics& count = client.end->statistics;
  EXPECT_EQ(count.prompt, 40u);
  EXPECT_EQ(count.generated, 9u);
  EXPECT_EQ(count.passes, 3u + 8u);
  EXPECT_EQ(count.companions, count.passes);
  EXPECT_EQ(count.accesses, count.demand);
  EXPECT_EQ(count.hits + count.misses, count.accesses);
  EXPECT_GT(count.queue_ms, 0);
  EXPECT_GT(count.prompt_ms, 0);
  EXPECT_GT(count.generated_ms, 0);
  EXPECT_EQ(count.stalled_ms, 0);
}

TEST_F(BatcherTest, NothingIsDrawnWithoutTokensToDraw) {
  make(1, 16);
  BatchRequest request = request_of(prompt_of(20), 0);
  request.logprobs = 2;
  request.prompt_logprobs = 1;
  const KeepingClient& client = submit(request);
  const KeepingClient& again = submit(request);  // though the prefix is there, all is computed
  run();
  EXPECT_TRUE(client.tokens.empty() && client.logits.empty());
  EXPECT_EQ(client.end->reason, StopReason::kLength);
  ASSERT_EQ(client.prompt_best.size(), 19u);
  EXPECT_EQ(again.prompt_best, client.prompt_best);
  EXPECT_EQ(again.cached, 0u);
  const AloneAnswer expected = alone(request_of(prompt_of(20), 1));
  std::vector<TokenLogprob> best;
  for (std::size_t i = 0; i < 19; ++i) {
    const TokenId token = request.prompt[i + 1];
    const double logprob = token_logprob(expected.rows[i], token, 2, best);
    best.insert(best.begin(), {token, logprob});
    EXPECT_EQ(client.prompt_best[i], best) << i;
  }
}

TEST_F(BatcherTest, LogprobsAreTheModelsOwnWhateverIsDrawn) {
  make(1, 16);
  BatchRequest request = request_of(prompt_of(6), 8);
  request.logprobs = 3;
  request.sampler.temperature = 2;
  request.sampler.seed = 5;
  request.sampler.bias = {{4, 3}, {9, -100}};
  const KeepingClient& client = submit(request);
  run();
  const AloneAnswer expected = alone(request);
  ASSERT_EQ(client.tokens, expected.tokens);
  std::vector<TokenLogprob> best;
  for (std::size_t i = 0; i < client.tokens.size(); ++i) {
    const double logprob = token_logprob(expected.rows[5 + i], client.tokens[i], 3, best);
    best.insert(best.begin(), {client.tokens[i], logprob});
    EXPECT_EQ(client.best[i], best) << i;
  }
}

TEST_F(BatcherTest, TheEndOfAnAnswerIsToldWithItsToken) {
  make(1, 16);
  BatchRequest request = request_of(prompt_of(6), 8);
  const std::vector<TokenId> tokens = alone(request).tokens;
  request.ignore_eos = false;
  request.ends = {tokens[3]};
  const std::size_t first = static_cast<std::size_t>(std::ranges::find(tokens, tokens[3]) - tokens.begin());
  const KeepingClient& client = submit(request);
  BatchRequest other = request_of(prompt_of(6), 8);
  KeepingClient& stopped = submit(other);
  stopped.stop_after = 2;
  run();
  EXPECT_EQ(client.end->reason, StopReason::kEos);
  EXPECT_EQ(client.tokens.size(), first + 1);
  EXPECT_EQ(stopped.end->reason, StopReason::kStopString);
  EXPECT_EQ(stopped.tokens.size(), 2u);
}

TEST_F(BatcherTest, AFullContextEndsAnAnswerWithoutALimit) {
  positions_ = 64;
  make(1, 16);
  const KeepingClient& client = submit(request_of(prompt_of(50), {}));
  const KeepingClient& full = submit(request_of(prompt_of(64), {}));
  run();
  EXPECT_EQ(client.end->reason, StopReason::kContext);
  EXPECT_EQ(client.tokens.size(), 15u);  // the last token needs no position
  EXPECT_EQ(client.tokens, alone(request_of(prompt_of(50), {})).tokens);
  EXPECT_EQ(full.end->reason, StopReason::kContext);
  EXPECT_EQ(full.tokens.size(), 1u);
}

TEST_F(BatcherTest, RefusesWhatCanNeverBeServed) {
  positions_ = 64;
  make(1, 16);
  const auto kind_of = [&](const BatchRequest& request) -> std::optional<ErrorKind> {
    KeepingClient client;
    try {
      batcher_->check(request);
    } catch (const Error& error) {
      EXPECT_THROW(batcher_->submit(request, client), Error);
      return error.kind();
    }
    return std::nullopt;
  };
  EXPECT_EQ(kind_of(request_of(prompt_of(40), 24)), std::nullopt);
  EXPECT_EQ(kind_of(request_of(prompt_of(40), 25)), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(request_of(prompt_of(64), {})), std::nullopt);
  EXPECT_EQ(kind_of(request_of(prompt_of(65), {})), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(request_of({}, 1)), ErrorKind::kInvalid);
  EXPECT_EQ(kind_of(request_of({3, 100000}, 1)), ErrorKind::kInvalid);
  BatchRequest request = request_of({3}, 1);
  request.prompt_logprobs = 1;
  EXPECT_EQ(kind_of(request), ErrorKind::kUsage);
  request.logprobs = 0;
  EXPECT_EQ(kind_of(request), std::nullopt);
  request.sampler.bias = {{100000, 1}};
  EXPECT_EQ(kind_of(request), ErrorKind::kUsage);
  request.sampler.bias = {{3, 101}};
  EXPECT_EQ(kind_of(request), ErrorKind::kUsage);
  EXPECT_FALSE(batcher_->advance());
}

// Several continuations of one text: what they have in common is computed once, and all the rest in one pass.
TEST_F(BatcherTest, LogprobsOfAPromptsEndLeaveItsBeginToBeFound) {
  make(4, 250);
  const auto continued = [](std::size_t salt) {
    std::vector<TokenId> prompt = prompt_of(60);
    for (const TokenId token : prompt_of(5, salt)) prompt.push_back(token);
    return prompt;
  };
  for (std::size_t salt = 1; salt <= 4; ++salt) {
    BatchRequest request = request_of(continued(salt), 0);
    request.logprobs = 0;
    request.prompt_logprobs = 60;
    submit(request);
  }
  run();
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<TokenId> prompt = continued(i + 1);
    EXPECT_EQ(clients_[i].cached, i == 0 ? 0u : 59u);
    EXPECT_EQ(clients_[i].end->statistics.companions, i == 0 ? 1u : 3u);
    ASSERT_EQ(clients_[i].prompt_best.size(), 5u);
    const AloneAnswer expected = alone(request_of(prompt, 1));
    std::vector<TokenLogprob> best;
    for (std::size_t t = 0; t < 5; ++t)
      EXPECT_EQ(clients_[i].prompt_best[t][0].logprob,
                token_logprob(expected.rows[59 + t], prompt[60 + t], 0, best));
  }
}

// Those of one request come one by one: the first computes the prompt, the others its last token alone.
TEST_F(BatcherTest, EqualPromptsAreComputedOnce) {
  make(4, 250);  // a pass has room for all
  for (std::uint64_t i = 0; i < 4; ++i) {
    BatchRequest request = request_of(prompt_of(60), 6);
    request.sampler.temperature = 1;
    request.sampler.seed = i;
    submit(request);
  }
  run();
  EXPECT_EQ(clients_[0].cached, 0u);
  std::size_t fed = 60;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(clients_[i].tokens.size(), 6u);
    if (i > 0) {
      EXPECT_EQ(clients_[i].cached, 59u);
    }
    BatchRequest request = request_of(prompt_of(60), 6);
    request.sampler.temperature = 1;
    request.sampler.seed = i;
    EXPECT_EQ(clients_[i].logits, alone(request).logits);
    fed += (i > 0 ? 1 : 0) + 5;
  }
  EXPECT_EQ(engine_->statistics().total().tokens, fed);
}

TEST_F(BatcherTest, ConversationsGoOnWhereTheyParted) {
  make(2, 64);
  const KeepingClient& first = submit(request_of(prompt_of(33), 8));
  run();
  std::vector<TokenId> longer = prompt_of(33);
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.push_back(1);
  const KeepingClient& second = submit(request_of(longer, 3));
  BatchRequest without = request_of(longer, 3);
  without.cache_prompt = false;
  const KeepingClient& third = submit(without);
  run();
  EXPECT_EQ(second.cached, 33u + 7u);  // the last token of the answer was never fed
  EXPECT_EQ(third.cached, 0u);
  EXPECT_EQ(second.logits, alone(without).logits);
  EXPECT_EQ(third.logits, second.logits);
}

}  // namespace
}  // namespace sluice::engine
