// One request that has been admitted: its sequence, the tokens that this holds or is to be fed, and what its
// client is told.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/batch/batch_request.h"
#include "engine/draft/draft_guard.h"
#include "engine/draft/sequence_drafts.h"
#include "engine/session/candidate.h"
#include "engine/session/sampler.h"
#include "engine/session/sequence.h"

namespace sluice::engine {

using RequestId = std::uint64_t;
using BatchTime = std::chrono::steady_clock::time_point;

// A request that waits, or has waited, for its admission.
struct QueuedRequest {
  RequestId id = 0;
  BatchRequest request;
  BatchClient* client = nullptr;
  BatchTime submitted;
  bool cancelled = false;
};

// kEnded: the client has been told, but a pass may still compute its tokens.
enum class RunState : std::uint8_t { kPrefill, kDecode, kStalled, kEnded };

// Thread-compatible. What it is given must outlive it.
class RunningSequence {
 public:
  // `first`: what the decoder starts from: the prompt, or behind an encoder its first token. `context`: most
  // tokens that the sequence may hold.
  RunningSequence(QueuedRequest queued, std::vector<tokenizer::TokenId> first, std::size_t context,
                  const std::vector<tokenizer::TokenId>& ends, std::unique_ptr<Sequence> sequence);

  RequestId id() const { return queued_.id; }
  const BatchRequest& request() const { return queued_.request; }
  BatchClient& client() { return *queued_.client; }
  RunState state() const { return state_; }
  Sequence& sequence() { return *sequence_; }
  RequestStatistics& statistics() { return statistics_; }
  std::span<const tokenizer::TokenId> tokens() const { return tokens_; }
  std::span<const tokenizer::TokenId> first_tokens() const { return std::span(tokens_).first(begins_); }
  // What is to be fed next: the rest of the prompt, or one token.
  std::span<const tokenizer::TokenId> lacking() const;
  std::size_t context() const { return context_; }

  // Its sequence is another one from now on, which holds more of the prompt. REQUIRES: not begun.
  void replace(std::unique_ptr<Sequence> sequence);
  void release() { sequence_.reset(); }
  // The first pass with its tokens begins; the client is told what was found.
  void begin(BatchTime now);
  bool has_begun() const { return begun_; }
  bool encoded = true;     // false: its input is yet to go through the encoder
  bool in_pass = false;    // an open pass has tokens of it
  bool alone = false;      // passes with others have failed twice: the next one is its own
  bool cancelled = false;  // it is to end at the next border

  void stall(BatchTime now);
  void go_on(BatchTime now);

  // Tokens that may be computed ahead of those that are drawn. REQUIRES: it decodes.
  DraftOffer offer();
  // The next pass computes `count` of the drafts that were offered. It holds for one pass.
  void set_drafts(std::size_t count) { drafts_ = proposal_.tokens().first(count); }
  std::span<const tokenizer::TokenId> drafts() const { return drafts_; }
  // Drafts of the last pass that came true.
  std::size_t accepted() const { return accepted_; }

  // What a pass with tokens of this sequence asks and gives, by the place of a token in the sequence. What a
  // pass wants is fixed when it begins; it draws nothing behind a token that was not foreseen.
  void begin_pass();
  bool wants(std::size_t place) const;
  void take(std::size_t place, std::span<const float> logits, std::span<Candidate> candidates);
  // The pass has added its tokens to the sequence: what was drawn becomes the next tokens.
  void end_pass(std::size_t companions, BatchTime now);
  void end(StopReason reason, BatchTime now);
  void fail(const Error& error, BatchTime now);

 private:
  struct Drawn {
    tokenizer::TokenId id = 0;
    double logprob = 0;
    std::vector<TokenLogprob> best = {};  // beside it
    bool completes = false;               // the answer, by what binds it
  };
  void take_prompt_token(std::size_t place, std::span<const float> logits);
  void draw(std::span<const float> logits, std::span<Candidate> candidates);
  tokenizer::TokenId next_token(std::span<const float> logits, std::span<Candidate> candidates);
  std::span<const Drawn> drawn() const { return std::span(drawn_).first(drawn_count_); }
  void accept_drawn(BatchTime now);
  void accept(const Drawn& drawn, BatchTime now);
  bool ends_answer(tokenizer::TokenId token) const;
  AnswerGuide* guide() const { return queued_.request.guide.get(); }
  void close(const BatchEnd& end, BatchTime now);

  QueuedRequest queued_;
  std::vector<tokenizer::TokenId> tokens_;  // that the decoder starts from, and the answer
  const std::size_t begins_;                // how many of these it starts from
  const std::size_t context_;
  const std::vector<tokenizer::TokenId>& ends_;  // the model's tokens that end an answer
  std::unique_ptr<Sequence> sequence_;
  Sampler sampler_;
  RunState state_ = RunState::kPrefill;
  bool begun_ = false;
  SequenceDrafts proposals_;
  Draft proposal_;
  std::span<const tokenizer::TokenId> drafts_;  // drafts of the next or running pass, a part of the proposal
  std::size_t accepted_ = 0;
  // Not yet given out; a pass that is repeated draws none of them again.
  std::array<Drawn, 1 + kMostDrafts> drawn_;
  std::size_t drawn_count_ = 0;
  bool parted_ = false;          // nothing is drawn behind these
  std::size_t wanted_from_ = 0;  // tokens that the running pass need not draw
  std::vector<TokenLogprob> prompt_best_;
  std::size_t prompt_told_;     // tokens of the prompt whose log-probabilities the client has, or never gets
  std::optional<Error> error_;  // an error of its logits alone
  BatchTime begun_at_, first_at_, last_at_, stalled_at_;
  RequestStatistics statistics_;
};

}  // namespace sluice::engine
