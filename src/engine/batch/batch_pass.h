// A pass over some tokens of some requests: what its step views, and what becomes of its logits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch/pass_account.h"
#include "engine/batch/running_sequence.h"
#include "engine/engine.h"
#include "engine/forward/pass.h"

namespace sluice::engine {

// Thread-compatible. The engine and the requests must outlive it. Errors of its functions are those of Pass;
// then no pass is open, and it may begin again.
class BatchPass {
 public:
  explicit BatchPass(Engine& engine) : engine_(engine) {}
  BatchPass(const BatchPass&) = delete;
  BatchPass& operator=(const BatchPass&) = delete;
  ~BatchPass();

  // Its next `tokens` tokens are part of the pass, and then the first `drafts` of those that it has offered.
  // REQUIRES: not begun; drafts only of an answer, behind its last token.
  void add(RunningSequence& sequence, std::size_t tokens, std::size_t drafts = 0);
  std::span<RunningSequence* const> members() const { return members_; }
  std::size_t tokens() const { return tokens_.size(); }
  std::size_t tokens_of(std::size_t member) const {  // without drafts
    return spans_[member].tokens - members_[member]->drafts().size();
  }
  bool decodes() const;      // it has no prompts
  DraftShape shape() const;  // REQUIRES: decodes()

  void begin(BatchTime now);
  // Computes the layers up to behind the next one that is sparse. False: none of these is left.
  bool advance();
  // Computes the rest, and draws.
  void finish();
  // The request has ended: its tokens stay in the pass, and give nothing.
  void leave_out(const RunningSequence& sequence);

  std::size_t failures = 0;  // how often it has failed

 private:
  LogitSink sink();
  std::size_t member_of(std::size_t token) const;
  void release();  // the members are in no pass from now on

  Engine& engine_;
  std::vector<RunningSequence*> members_;  // by span
  std::vector<tokenizer::TokenId> tokens_;
  std::vector<SequenceSpan> spans_;
  PassAccount account_;
  std::optional<Pass> pass_;
  bool holds_members_ = false;
};

}  // namespace sluice::engine
