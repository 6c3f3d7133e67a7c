// The requests that the engine's thread works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/batch/batcher.h"
#include "engine/grammar/grammar_masks.h"
#include "serve/engine/answer_stream.h"
#include "serve/engine/request_desk.h"

namespace sluice::serve {

// Used by the engine's thread alone.
class RequestTickets {
 public:
  // What is given must outlive this.
  RequestTickets(engine::Batcher& batcher, const AnswerReading& reading,
                 const std::vector<tokenizer::TokenId>& chat_ends, std::size_t parallel,
                 engine::GrammarMasks* masks = nullptr);  // null: no answer is bound

  // All sequences of a request, in order. What the batcher refuses ends with a Failure.
  void submit(NewRequest request);
  void cancel(RequestId id, Failure::Kind kind = Failure::Kind::kCancelled);
  void cancel_waiting(Failure::Kind kind);  // those of which nothing has begun
  void cancel_all(Failure::Kind kind);
  void fail_all(const Failure& failure);  // the batcher is used no more
  // Cancels those whose events nobody takes, and forgets those that have ended.
  void tidy();
  bool empty() const { return tickets_.empty(); }
  DeskReport report() const;

 private:
  struct Sequence {
    std::unique_ptr<AnswerStream> stream;
    engine::RequestId id = 0;
    SlotState state;  // what does not change
  };
  struct Ticket {
    RequestId id = 0;
    std::vector<Sequence> sequences;
    bool waits() const;
    bool ended() const;
  };
  void cancel(Ticket& ticket, Failure::Kind kind);

  engine::Batcher& batcher_;
  const AnswerReading& reading_;
  const std::vector<tokenizer::TokenId>& chat_ends_;
  const std::size_t parallel_;
  engine::GrammarMasks* const masks_;
  std::vector<Ticket> tickets_;  // in the order in which they came
};

}  // namespace sluice::serve
