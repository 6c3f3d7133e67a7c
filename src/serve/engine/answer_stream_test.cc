#include "serve/engine/answer_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tokenizer/tokenizer.h"

namespace sluice::serve {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Tokens of a text, one after the other, as a batcher gives them.
class AnswerStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = tokenizer::load_tokenizer(SLUICE_SOURCE_DIR "/models/fable-moe-18m");
    reading_.tokenizer = tokenizer_.get();
    reading_.format = tokenizer::answer_format("<tool_call> <think>");
    request_.prompt = {1, 2, 3};
  }

  void make() { stream_.emplace(reading_, request_, 0, queue_, 7); }
  // False where the stream wants no more.
  bool feed(const std::string& text) {
    for (const tokenizer::TokenId id : tokenizer_->encode(text, tokenizer::AddSpecial::kNo))
      if (!stream_->on_token({.id = id, .logprob = -0.5})) return false;
    return true;
  }
  void end(engine::StopReason reason) {
    engine::BatchEnd end;
    end.reason = reason;
    stream_->on_end(end);
  }
  void collect() {
    for (const AnswerEvent& event : queue_->take()) {
      if (const auto* text = std::get_if<TextDelta>(&event.body)) {
        text_ += text->text;
        scores_ += text->tokens.size();
      }
      if (const auto* reasoning = std::get_if<ReasoningDelta>(&event.body)) reasoning_ += reasoning->text;
      if (const auto* call = std::get_if<ToolBegin>(&event.body)) calls_.push_back(call->name);
      if (const auto* part = std::get_if<ToolArguments>(&event.body)) arguments_ += part->fragment;
      if (const auto* finish = std::get_if<Finish>(&event.body)) finish_ = *finish;
      if (const auto* failure = std::get_if<Failure>(&event.body)) failure_ = *failure;
    }
  }
  void chat() {
    request_.parsing.emplace();
    request_.parsing->calls = true;
    request_.parsing->tools = {{"f", "{}"}, {"g", "{}"}};
  }

  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  AnswerReading reading_;
  TextRequest request_;
  std::shared_ptr<EventQueue> queue_ = std::make_shared<EventQueue>();
  std::optional<AnswerStream> stream_;
  std::string text_, reasoning_, arguments_;
  std::vector<std::string> calls_;
  std::size_t scores_ = 0;
  std::optional<Finish> finish_;
  std::optional<Failure> failure_;
};

TEST_F(AnswerStreamTest, TextIsWhole) {
  make();
  EXPECT_TRUE(feed("Grüße, 世界 🙂!"));
  end(engine::StopReason::kLength);
  collect();
  EXPECT_EQ(text_, "Grüße, 世界 🙂!");
  EXPECT_EQ(finish_->reason, FinishReason::kLength);
}

TEST_F(AnswerStreamTest, AStopStringEndsTheText) {
  request_.stops = {"STOP"};
  make();
  EXPECT_FALSE(feed("before STOP behind"));
  end(engine::StopReason::kStopString);
  collect();
  EXPECT_EQ(text_, "before ");
  EXPECT_EQ(finish_->reason, FinishReason::kStopString);
  EXPECT_EQ(finish_->stop, "STOP");
}

TEST_F(AnswerStreamTest, WhatMightHaveBecomeAStopStringIsGiven) {
  request_.stops = {"STOP"};
  make();
  EXPECT_TRUE(feed("before STO"));
  end(engine::StopReason::kEos);
  collect();
  EXPECT_EQ(text_, "before STO");
  EXPECT_EQ(finish_->reason, FinishReason::kStop);
}

TEST_F(AnswerStreamTest, TheTemplatesEndIsNoStopString) {
  reading_.ends = {"<end>"};
  chat();
  make();
  EXPECT_FALSE(feed("hello<end>"));
  end(engine::StopReason::kStopString);
  collect();
  EXPECT_EQ(text_, "hello");
  EXPECT_EQ(finish_->reason, FinishReason::kStop);
}

TEST_F(AnswerStreamTest, ReasoningAndCallsAreToldApart) {
  chat();
  make();
  EXPECT_TRUE(
      feed("<think>\nhm\n</think>\n\nSo.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
           "1}}\n</tool_call>"));
  end(engine::StopReason::kEos);
  collect();
  EXPECT_EQ(reasoning_, "hm");
  EXPECT_EQ(text_, "So.");
  EXPECT_THAT(calls_, ElementsAre("f"));
  EXPECT_EQ(arguments_, "{\"a\": 1}");
  EXPECT_EQ(finish_->reason, FinishReason::kToolCalls);
  EXPECT_GT(finish_->usage.reasoning, 0u);
}

TEST_F(AnswerStreamTest, AStopStringActsOnContentAlone) {
  chat();
  request_.stops = {"hm", "arguments"};
  make();
  EXPECT_TRUE(
      feed("<think>\nhm\n</think>\n\nSo.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"));
  end(engine::StopReason::kEos);
  collect();
  EXPECT_EQ(reasoning_, "hm");
  EXPECT_THAT(calls_, ElementsAre("f"));
}

TEST_F(AnswerStreamTest, OneCallIsEnough) {
  chat();
  request_.parsing->one_call = true;
  make();
  EXPECT_FALSE(
      feed("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
           "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"));
  end(engine::StopReason::kStopString);
  collect();
  EXPECT_THAT(calls_, ElementsAre("f"));
  EXPECT_EQ(finish_->reason, FinishReason::kToolCalls);
}

TEST_F(AnswerStreamTest, EveryTokenOfARawAnswerHasItsScore) {
  request_.logprobs = 0;
  make();
  const std::size_t tokens = tokenizer_->encode("one 世界 two", tokenizer::AddSpecial::kNo).size();
  EXPECT_TRUE(feed("one 世界 two"));
  EXPECT_TRUE(stream_->on_token({.id = 1, .ends = true, .logprob = -1}));
  end(engine::StopReason::kEos);
  collect();
  EXPECT_EQ(scores_, tokens + 1);
}

TEST_F(AnswerStreamTest, OfAChatThoseOfTheContentHaveOne) {
  chat();
  request_.logprobs = 0;
  make();
  EXPECT_TRUE(feed("<think>\nwell\n</think>\n\n"));
  EXPECT_TRUE(feed("Yes, they are."));
  EXPECT_TRUE(stream_->on_token({.id = 1, .ends = true, .logprob = -1}));
  end(engine::StopReason::kEos);
  collect();
  EXPECT_EQ(scores_, tokenizer_->encode("Yes, they are.", tokenizer::AddSpecial::kNo).size());
}

TEST_F(AnswerStreamTest, CancelledAndBrokenAnswersSayWhy) {
  make();
  stream_->end_as(Failure::Kind::kDraining);
  end(engine::StopReason::kInterrupted);
  collect();
  EXPECT_EQ(failure_->kind, Failure::Kind::kDraining);
  make();
  engine::BatchEnd broken;
  broken.error = Error(ErrorKind::kIo, "cannot be read").in("/home/someone/models/m/model.safetensors", 4096);
  stream_->on_end(broken);
  collect();
  EXPECT_EQ(failure_->message, "model.safetensors at byte 4096: cannot be read");
}

TEST_F(AnswerStreamTest, NobodyWhoTakesIsNoticed) {
  queue_->close();
  make();
  EXPECT_FALSE(feed("one two three"));
  EXPECT_TRUE(stream_->lost());
}

}  // namespace
}  // namespace sluice::serve
