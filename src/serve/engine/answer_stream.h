// One sequence of a request: the batcher's tokens, as the text, reasoning and calls of an answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/batch/batch_request.h"
#include "engine/session/stop_strings.h"
#include "serve/answer_event.h"
#include "serve/event_queue.h"
#include "serve/text_request.h"
#include "tokenizer/chat/calls/answer_parser.h"
#include "tokenizer/tokenizer.h"

namespace sluice::serve {

// How answers of the model are read.
struct AnswerReading {
  const tokenizer::Tokenizer* tokenizer = nullptr;  // null: answers have no text
  tokenizer::AnswerFormat format;                   // the format of a chat
  std::vector<std::string> ends;  // texts that end an answer of a chat, beside the request's
};

// Used by the engine's thread alone. What it is given must outlive it.
class AnswerStream final : public engine::BatchClient {
 public:
  AnswerStream(const AnswerReading& reading, const TextRequest& request, std::size_t sequence,
               std::shared_ptr<EventQueue> events, std::uint64_t seed);
  ~AnswerStream() override;

  bool ended() const { return ended_; }                      // its last event has been given
  bool lost() const { return lost_; }                        // nobody takes its events
  void end_as(Failure::Kind kind) { cancelled_as_ = kind; }  // what a cancellation is called
  void fail(const Failure& failure);                         // before it came to the batcher

  bool admitted() const { return admitted_; }
  std::size_t cached() const { return cached_; }
  std::size_t prefilled() const { return prefilled_; }
  std::size_t generated() const { return generated_; }

  void on_admitted(std::size_t cached) override;
  void on_prefill(std::size_t done, std::size_t total) override;
  void on_prompt_token(const engine::BatchToken& token) override;
  bool on_token(const engine::BatchToken& token) override;
  void on_end(const engine::BatchEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;

  void push(EventBody body);
  void read(std::string_view text, std::optional<tokenizer::TokenId> id);
  void take(const tokenizer::AnswerEvent& event);
  void give_text(const std::string& text);
  void finish_text();
  ScoredToken scored(const engine::BatchToken& token) const;
  Finish finish_of(const engine::BatchEnd& end) const;

  // Scores the tokens that make the last `bytes` bytes of what has come; those before them were marks and
  // blanks.
  void score_content(std::size_t bytes);

  const AnswerReading& reading_;
  const std::size_t sequence_, prompt_;
  const std::vector<std::string> own_stops_;  // those of the request
  const bool scores_, often_, one_call_;
  const std::shared_ptr<EventQueue> events_;
  std::optional<tokenizer::StreamDecoder> decoder_;
  std::optional<tokenizer::AnswerParser> parser_;
  engine::StopStrings stops_;
  struct Pending {
    ScoredToken token;
    std::size_t bytes = 0;  // bytes of its text
  };
  std::vector<Pending> pending_;  // it is not known yet whether they are content
  std::vector<ScoredToken> content_scores_, prompt_scores_;
  std::size_t cached_ = 0, prefilled_ = 0, generated_ = 0, reasoning_ = 0, calls_ = 0;
  bool admitted_ = false, ended_ = false, lost_ = false, calls_over_ = false;
  Failure::Kind cancelled_as_ = Failure::Kind::kCancelled;
  Clock::time_point admitted_at_, told_at_;
};

}  // namespace sluice::serve
