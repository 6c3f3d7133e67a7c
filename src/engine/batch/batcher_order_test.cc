// Who is computed when: the queue, the share of time, room, cancellation, and whom a broken read hits.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "engine/batch/batch_testing.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using tokenizer::TokenId;

// Turns a clock as layers run: so long for one of a step with prompts, and of one without.
class Toll final : public RoutingObserver {
 public:
  Toll(TurnedClock& clock, std::chrono::nanoseconds prompt, std::chrono::nanoseconds decode)
      : clock_(clock), prompt_(prompt), decode_(decode) {}
  void on_step(const Step& step) override { kind_ = step.kind(); }
  void on_resume(const Step& step) override { kind_ = step.kind(); }
  void on_decisions(std::uint32_t, const experts::LayerDecision&) override {
    clock_.time += kind_ == StepKind::kPrompt ? prompt_ : decode_;
  }

 private:
  TurnedClock& clock_;
  const std::chrono::nanoseconds prompt_, decode_;
  StepKind kind_ = StepKind::kPrompt;
};

class BatcherOrder : public BatcherFixture {
 protected:
  void advance(int turns) {
    for (int i = 0; i < turns; ++i) batcher_->advance();
  }
  // Turns until the client has this many tokens.
  void advance_to(const KeepingClient& client, std::size_t tokens) {
    for (int i = 0; i < 10000 && client.tokens.size() < tokens; ++i) batcher_->advance();
    ASSERT_EQ(client.tokens.size(), tokens);
  }
};

TEST_F(BatcherOrder, TheFirstOfTheQueueIsNotOvertaken) {
  make(4, 64, 192);  // six blocks
  std::vector<std::size_t> admitted;
  const std::vector<std::pair<std::size_t, std::size_t>> requests = {{90, 30}, {70, 30}, {3, 3}, {2, 2}};
  for (std::size_t i = 0; i < requests.size(); ++i)
    submit(request_of(prompt_of(requests[i].first, i), requests[i].second)).at_admission = [&admitted, i] {
      admitted.push_back(i);
    };
  advance_to(clients_[0], 29);
  EXPECT_EQ(admitted, (std::vector<std::size_t>{0}));  // the second needs four blocks, and two are free
  EXPECT_EQ(batcher_->load().waiting, 3u);
  EXPECT_EQ(batcher_->load().decoding, 1u);
  run();
  ASSERT_EQ(admitted.size(), 4u);
  EXPECT_EQ(admitted[1], 1u);
}

TEST_F(BatcherOrder, AStaticBatchAnswersWhenNoPromptIsLeft) {
  rules_.prompts_first = true;
  EngineOptions options = batch_options(3, 32);
  options.suspended_passes = 0;
  make(options);
  const std::vector<std::size_t> prompts = {5, 60, 40};
  for (const std::size_t prompt : prompts) submit(request_of(prompt_of(prompt, prompt), 4));
  for (BatchLoad load = batcher_->load(); batcher_->advance(); load = batcher_->load()) {
    if (load.waiting + load.prefilling == 0) continue;
    for (const KeepingClient& client : clients_) EXPECT_LE(client.tokens.size(), 1u);
  }
  expect_nothing_left();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(clients_[i].tokens, alone(request_of(prompt_of(prompts[i], prompts[i]), 4)).tokens);
}

TEST_F(BatcherOrder, EveryAnswerGetsOneTokenAPass) {
  make(3, 64);
  for (std::size_t i = 0; i < 5; ++i) submit(request_of(prompt_of(20 + i, i), 6 + i));
  const auto running = [&] { return batcher_->load(); };
  while (running().decoding < 3) batcher_->advance();
  for (int pass = 0; pass < 4; ++pass) {
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < 3; ++i) before.push_back(clients_[i].tokens.size());
    batcher_->advance();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(clients_[i].tokens.size(), before[i] + 1);
  }
  EXPECT_EQ(running().waiting, 2u);
  run();
}

// While a long prompt is read: nothing, half of the time, all of it.
TEST_F(BatcherOrder, AnswersGetTheirShareOfTheTimeBesideAPrompt) {
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    SCOPED_TRACE(share);
    rules_.decode_share = share;
    clock_ = {.tick = 0ns};
    make(2, 64);
    Toll toll(clock_, 12ms, 1ms);
    engine_->observe(&toll);
    const KeepingClient& answer = submit(request_of(prompt_of(5), 150));
    advance_to(answer, 3);
    const KeepingClient& prompt = submit(request_of(prompt_of(64, 1), 1));
    const auto began = clock_.time;
    while (!prompt.end && !answer.end) batcher_->advance();
    const auto layers = model_.model.config.sparse_layers();
    const double all = std::chrono::duration<double>(clock_.time - began).count();
    const double decoded =
        static_cast<double>(answer.tokens.size() - 3) * 0.001 * static_cast<double>(layers);
    if (share == 0) {
      EXPECT_EQ(answer.tokens.size(), 3u);
    } else if (share == 1) {
      EXPECT_TRUE(answer.end && !prompt.end);
    } else {
      EXPECT_NEAR(decoded / all, share, 0.2) << all;  // by whole layers and passes
      EXPECT_TRUE(prompt.end);
    }
    run();
    engine_->observe(nullptr);
  }
}

TEST_F(BatcherOrder, SmallPromptsTakeTheAnswersAlong) {
  make(3, 64);
  const KeepingClient& answer = submit(request_of(prompt_of(5), 40));
  advance_to(answer, 3);
  const std::uint64_t steps = engine_->statistics().total().steps;
  const KeepingClient &small = submit(request_of(prompt_of(20, 1), 4)),
                      &other = submit(request_of({1, 2}, 4));
  batcher_->advance();
  EXPECT_EQ(engine_->statistics().total().steps, steps + 1);
  EXPECT_EQ(small.tokens.size(), 1u);
  EXPECT_EQ(other.tokens.size(), 1u);
  EXPECT_EQ(answer.tokens.size(), 4u);
  run();
  EXPECT_EQ(small.end->statistics.companions, 3u * 4);
}

TEST_F(BatcherOrder, PromptsThatWaitTogetherShareAPass) {
  make(4, 160);
  for (std::size_t i = 0; i < 4; ++i) submit(request_of(prompt_of(30 + i, i), 1));
  run();
  EXPECT_EQ(engine_->statistics().prefill.steps, 1u);
  for (const KeepingClient& client : clients_) EXPECT_EQ(client.end->statistics.companions, 4u);
}

TEST_F(BatcherOrder, OnlyAnswersWithoutALimitWaitForRoom) {
  positions_ = 128;
  rules_.stretch = 32;
  make(5, 64, 384);  // twelve blocks
  for (std::size_t i = 0; i < 4; ++i) submit(request_of(prompt_of(20, i), std::nullopt));
  submit(request_of(prompt_of(20, 4), 100));
  std::vector<std::size_t> ended;
  for (std::size_t i = 0; i < 5; ++i) clients_[i].at_end = [&ended, i] { ended.push_back(i); };
  std::size_t most_stalled = 0;
  while (batcher_->advance()) most_stalled = std::max(most_stalled, batcher_->load().stalled);
  expect_nothing_left();
  // The one with a limit goes on to its end; then the youngest of the others gives its room to them.
  EXPECT_EQ(clients_[4].end->statistics.stalled_ms, 0);
  EXPECT_EQ(clients_[4].tokens.size(), 100u);
  EXPECT_EQ(most_stalled, 4u);
  ASSERT_EQ(ended.size(), 5u);
  EXPECT_EQ(ended[0], 4u);
  EXPECT_EQ(ended[1], 3u);
  EXPECT_EQ(clients_[3].end->reason, StopReason::kLength);
  EXPECT_EQ(clients_[0].end->reason, StopReason::kContext);
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<TokenId> expected = alone(request_of(prompt_of(20, i), std::nullopt)).tokens;
    EXPECT_GE(clients_[i].tokens.size(), 32u);
    expected.resize(clients_[i].tokens.size());
    EXPECT_EQ(clients_[i].tokens, expected);
    EXPECT_GT(clients_[i].end->statistics.stalled_ms, 0);
  }
}

TEST_F(BatcherOrder, WhatIsReservedIsNeverWaitedFor) {
  const std::uint64_t seed = batch_seed();
  SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  make(8, 64, 256);
  for (int i = 0; i < 30; ++i) {
    const std::size_t prompt = 1 + random() % 100;
    submit(request_of(prompt_of(prompt, random() % 3), 1 + random() % (positions_ - prompt)));
  }
  while (batcher_->advance()) EXPECT_EQ(batcher_->load().stalled, 0u);
  expect_nothing_left();
  for (const KeepingClient& client : clients_) {
    EXPECT_EQ(client.end->reason, StopReason::kLength);
    EXPECT_EQ(client.end->statistics.stalled_ms, 0);
  }
}

TEST_F(BatcherOrder, CancelledRequestsGiveTheirRoomBack) {
  for (int layer = 0; layer < 4; ++layer) {
    SCOPED_TRACE(layer);
    make(2, 64);
    clients_.clear();
    ids_.clear();
    const KeepingClient& first = submit(request_of(prompt_of(60), 5));
    advance(layer);
    batcher_->cancel(ids_[0]);
    EXPECT_FALSE(batcher_->advance());  // it was alone in its pass
    EXPECT_EQ(first.end->reason, StopReason::kInterrupted);
    expect_nothing_left();
    // Beside another one.
    const KeepingClient& goes = submit(request_of(prompt_of(25, 1), 5));
    const KeepingClient& stays = submit(request_of(prompt_of(25, 2), 5));
    advance(layer);
    batcher_->cancel(ids_[1]);
    batcher_->advance();
    EXPECT_EQ(goes.end->reason, StopReason::kInterrupted);
    run();
    EXPECT_EQ(stays.logits, alone(request_of(prompt_of(25, 2), 5)).logits);
    EXPECT_LE(goes.tokens.size(), 1u);
  }
}

// One read is broken for good: those that need it end with its error, and nobody else does.
TEST_F(BatcherOrder, ABrokenReadEndsThoseThatNeedIt) {
  const auto requests = [] {
    std::vector<BatchRequest> all;
    for (std::size_t i = 0; i < 6; ++i) all.push_back(request_of({static_cast<TokenId>(11 * i + 1)}, 2));
    return all;
  }();
  EngineOptions options = batch_options(6, 64);
  Faults faults;
  faults.put_into(options);
  std::vector<Bytes> offsets;  // offsets of the reads of one of them
  {
    make(options);
    faults.set([&](const DiskRead& read) { return offsets.push_back(read.offset), false; });
    submit(requests[0]);
    run();
  }
  bool mixed = false;
  for (std::size_t k = 0; k < offsets.size() && !mixed; k += 3) {
    const auto fails = [&](const DiskRead& read) { return read.offset == offsets[k]; };
    std::vector<bool> expected;
    for (const BatchRequest& request : requests) {
      faults.set(nullptr);
      make(options);
      faults.set(fails);
      clients_.clear();
      submit(request);
      run();
      expected.push_back(clients_[0].end->error.has_value());
    }
    mixed = std::ranges::count(expected, true) > 0 && std::ranges::count(expected, false) > 0;
    if (!mixed) continue;
    faults.set(nullptr);
    make(options);
    faults.set(fails);
    clients_.clear();
    for (const BatchRequest& request : requests) submit(request);
    run();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(clients_[i].end->error.has_value(), expected[i]) << i;
      if (expected[i]) {
        EXPECT_EQ(clients_[i].end->error->kind(), ErrorKind::kIo);
      } else {
        EXPECT_EQ(clients_[i].logits, alone(requests[i]).logits) << i;
      }
    }
  }
  EXPECT_TRUE(mixed);
}

// A read that fails once is not noticed.
TEST_F(BatcherOrder, APassThatFailsOnceIsRepeated) {
  EngineOptions options = batch_options(2, 64);
  Faults faults;
  faults.put_into(options);
  make(options);
  std::uint64_t at = 0;
  faults.set([&](const DiskRead&) { return ++at == 5; });
  const KeepingClient& one = submit(request_of(prompt_of(40), 4));
  const KeepingClient& other = submit(request_of(prompt_of(10, 1), 4));
  run();
  EXPECT_EQ(faults.failed, 1u);
  EXPECT_EQ(one.logits, alone(request_of(prompt_of(40), 4)).logits);
  EXPECT_EQ(other.logits, alone(request_of(prompt_of(10, 1), 4)).logits);
}

}  // namespace
}  // namespace sluice::engine
