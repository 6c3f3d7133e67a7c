// The state of a Batcher, and its turn. Only batcher*.cc include this.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch/batch_limits.h"
#include "engine/batch/batch_pass.h"
#include "engine/batch/batch_queue.h"
#include "engine/batch/batcher.h"
#include "engine/batch/running_sequence.h"
#include "engine/engine.h"
#include "engine/session/prefix_cache.h"

namespace sluice::engine {

// Functions that Batcher has, too, are documented there.
class Batcher::Impl {
 public:
  Impl(Engine& engine, const BatchRules& rules);

  void check(const BatchRequest& request) const { limits_.check(request); }
  RequestId submit(BatchRequest request, BatchClient& client);
  void cancel(RequestId id);
  bool advance();
  BatchLoad load() const;

 private:
  using Sequences = std::vector<RunningSequence*>;  // in the order of their admission

  // batcher.cc: admission, room, and ends.
  void end_cancelled();
  void give_room();
  bool make_room(RunningSequence& sequence);  // for what it lacks. False: it ends or waits
  bool grow(Sequence& sequence) const;
  bool end_youngest_if_all_stall();
  void admit();
  // Null: there is no room. Errors as PrefixCache::begin.
  std::unique_ptr<Sequence> begin_sequence(const BatchRequest& request,
                                           std::span<const tokenizer::TokenId> first);
  void collect();  // sequences that have ended and are in no pass go
  Sequences in_state(RunState state) const;
  void share(RunningSequence& sequence);

  // batcher_passes.cc: what is computed.
  // Opens a pass of prompts, if some wait. True: it was small, and has been computed.
  bool compute_small_pass();
  Sequences prompts_to_compute();
  bool waits_for_twin(const RunningSequence& prompt, const Sequences& older) const;
  void find_again(RunningSequence& prompt);
  bool encode(RunningSequence& sequence);  // false: it has failed
  void try_to_encode(RunningSequence& sequence);
  bool take_along_answers(BatchPass& pass);  // their next tokens. False: not in this pass
  void begin_prompt_pass();
  void advance_prompt_pass();
  void prompt_pass_failed(const Error& error);
  bool decode_is_due() const;
  std::vector<std::size_t> choose_drafts(const Sequences& answers);
  void decode();
  // A pass that is not suspended, with all that follows its errors.
  void compute_now(BatchPass& pass);
  std::optional<Error> run(BatchPass& pass);
  void conclude(const BatchPass& pass);
  void fail(const BatchPass& pass, const Error& error);
  BatchTime now() const { return rules_.now(); }

  Engine& engine_;
  const BatchRules rules_;
  const BatchLimits limits_;
  PrefixCache& cache_;
  const bool has_encoder_;
  BatchQueue queue_;
  std::vector<std::unique_ptr<RunningSequence>> running_;  // in the order of their admission
  std::unique_ptr<BatchPass> prompt_pass_;                 // suspended; null: none is open
  BatchTime opened_at_;                                    // when it was …
  std::chrono::steady_clock::duration decoded_for_{};      // … and how long answers have been decoded since
  RequestId submitted_ = 0;
};

}  // namespace sluice::engine
