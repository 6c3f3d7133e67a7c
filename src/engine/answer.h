// One answer in the making: a prompt, the sequence that it is fed to, and the tokens that follow.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/draft/draft_guard.h"
#include "engine/draft/sequence_drafts.h"
#include "engine/generate.h"
#include "engine/session/sampler.h"
#include "engine/session/stop_strings.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

class Sequence;  // session/sequence.h

// Thread-compatible. What it is given must outlive it.
class Answer {
 public:
  // Errors as generate(). `sequence` holds the keys and values of the prompt's first tokens, and of nothing
  // else: of fewer than all of them. `tokenizer` may be null.
  Answer(Engine& engine, Sequence& sequence, const tokenizer::Tokenizer* tokenizer,
         const GenerateRequest& request);

  // Prefills what the sequence lacks of the prompt, of an encoder or of the decoder alone, and draws the
  // first token, whose logits are not kept. An interrupt stops it in front of any layer.
  void prefill(std::chrono::steady_clock::time_point start);
  void take_first();  // gives out the token that prefill() has drawn

  // Tokens that a step may compute ahead of those that are drawn; none while drafts are off.
  DraftOffer offer();
  // The next step computes the last token, and so many of those that were offered.
  void begin_step(std::size_t drafts);
  std::span<const tokenizer::TokenId> drafts() const { return drafts_; }
  // Logits of the step's tokens, in order. What comes behind a draft that was not drawn, or behind the end of
  // the answer, is no matter.
  void take(std::span<const float> logits);
  // The step is over: drafts that did not come true leave the sequence.
  void end_step();

  bool open() const { return open_; }  // more tokens are wanted
  Sequence& sequence() { return sequence_; }
  tokenizer::TokenId last_token() const { return tokens_.back(); }
  // What the decoder has been fed, or is to be fed next: where it starts, and the answer.
  const std::vector<tokenizer::TokenId>& tokens() const { return tokens_; }
  bool stop_if_asked();
  GenerateResult finish();

 private:
  void accept(tokenizer::TokenId token);
  void give_out(const std::string& piece);
  void close(StopReason reason);

  Engine& engine_;
  Sequence& sequence_;
  const GenerateRequest& request_;
  Sampler sampler_;
  const std::span<Candidate> candidates_;   // scratch that all sequences share
  bool encoded_;                            // or there is no encoder
  std::vector<tokenizer::TokenId> tokens_;  // that the decoder starts from, and the answer
  const std::size_t begins_;                // of these, those that it starts from
  std::optional<tokenizer::StreamDecoder> decoder_;
  StopStrings stops_;
  GenerateResult result_;
  std::string text_;
  SequenceDrafts proposals_;
  Draft proposal_;
  std::span<const tokenizer::TokenId> drafts_;  // of the running step, a part of the proposal
  std::size_t drawn_ = 0;                       // tokens that the running step has given
  bool parted_ = false;                         // … and it gives no more
  tokenizer::TokenId first_token_ = 0;  // drawn at once: logits of all sequences would take much memory
  std::chrono::steady_clock::time_point decode_start_;
  bool open_ = true;
};

// Prefills the answers one after the other, then decodes one token of every open one at a time, until none is
// open.
void complete(Engine& engine, std::span<Answer* const> answers);

}  // namespace sluice::engine
