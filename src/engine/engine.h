// A running model: weights in memory, experts on their way, one step at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "engine/plan/engine_plan.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"

namespace sluice::fetch {
class Timeline;
}

namespace sluice::engine {

struct Candidate;       // engine/session/candidate.h
class Drafting;         // engine/draft/drafting.h
struct EngineHooks;     // engine/engine_hooks.h
struct MeasureOptions;  // engine/forward/common/measure_profile.h
class Pass;             // engine/forward/pass.h
class PrefixCache;      // engine/session/prefix_cache.h
class RoutingObserver;  // engine/watch/routing_observer.h
struct RunReport;       // engine/run_report.h
struct Statistics;      // engine/watch/statistics.h

// Thread-compatible. Two engines may run in one process, each with its own threads and budget.
class Engine {
 public:
  // Divides the budget, then loads the dense weights; experts are read when they are first needed.
  // `checkpoint` must outlive the engine. `plan`: resolved for this model. Error(kBudget) before anything is
  // loaded; Error(kIo), (kCorrupt), (kUsage), (kUnsupported). `logit_rows`: tokens whose logits are made at a
  // time (1 for generation).
  Engine(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
         std::size_t logit_rows = 1);
  // For tests. What `hooks` refers to must outlive the engine.
  Engine(const store::Checkpoint& checkpoint, const model::Model& model, EnginePlan plan,
         std::size_t logit_rows, const EngineHooks& hooks);
  ~Engine();

  const store::Checkpoint& checkpoint() const;
  const model::Model& model() const;
  const EnginePlan& plan() const;
  const PolicyPlan& policies() const;  // those of the plan that run
  const Statistics& statistics() const;
  std::size_t chunk() const;  // most tokens of a step
  RunReport report() const;

  // Measures the costs of this machine for this model. Nothing may be running, and with a device no step may
  // have run; caches do not change, and observers are not called. After an Error(kIo) or (kCorrupt) the
  // engine is as before. Error(kUnsupported) for slices, for which no policy has costs.
  Profile measure(const MeasureOptions& options);
  // `observer` watches all steps from now on; null: no observer. It must outlive the engine or its successor.
  void observe(RoutingObserver* observer);
  // Records every read, decode, merge and computation of an expert from the next step on; null: stops.
  // `timeline` must live as long as an observer.
  void record_timeline(fetch::Timeline* timeline);

  // A new sequence with room for plan().positions tokens (and encoder_positions of an encoder's input).
  // The budget has room for plan().sequences of them at a time, unless plan().kv_tokens says how many
  // positions all have together. Error(kBudget) if too few are left.
  std::unique_ptr<Sequence> new_sequence();
  // Sequences of any length, of the same positions, that go on from what others have computed.
  PrefixCache& prefixes();
  // Scratch of samplers, (vocab), part of the plan; empty unless plan().draws. One sampler at a time.
  std::span<Candidate> candidates() const;

  // For encoder-decoders: computes the encoder's whole input of a sequence, at least one token, before its
  // first step. False when `go_on` (called before every chunk; may be empty) returned false: the sequence
  // then has no input. Error(kInvalid) as for step().
  bool encode(Sequence& sequence, std::span<const tokenizer::TokenId> tokens,
              const std::function<bool()>& go_on = {});
  // Begins a pass of 1 … chunk() tokens, as Passes::begin. The budget has room for 1 +
  // plan().suspended_passes open passes.
  Pass begin(const Step& step);
  // One step of at most chunk() tokens, from begin to finish. Token ids are checked. After an Error(kIo) or
  // (kCorrupt) the sequences are as before the step, and the engine can go on.
  void step(const Step& step, const LogitSink& sink);
  // Feeds a prompt's tokens of one sequence in chunks, or those that follow the last ones of its prompt;
  // `sink` gets the logits that it wants, by index in `tokens`. `go_on` is asked before every layer of every
  // chunk, and may be empty; false ends in front of that chunk. `worlds`: Step::worlds. Returns the tokens
  // fed.
  std::size_t prefill(Sequence& sequence, std::span<const tokenizer::TokenId> tokens, const LogitSink& sink,
                      const std::function<bool()>& go_on = {}, experts::Worlds* worlds = nullptr);
  // Drafts of decoded tokens: off until someone says otherwise.
  Drafting& drafting();
  // Feeds one decoded token of one sequence, for its logits if `sink` wants them. Or returns its logits,
  // valid until the next step.
  void decode(Sequence& sequence, tokenizer::TokenId token, const LogitSink& sink);
  std::span<const float> decode(Sequence& sequence, tokenizer::TokenId token);

 private:
  class Impl;  // engine_impl.h
  // Where nobody has asked for the plan's device and it cannot be used: without it.
  static std::unique_ptr<Impl> begin_impl(const store::Checkpoint& checkpoint, const model::Model& model,
                                          const EnginePlan& plan, std::size_t logit_rows,
                                          const EngineHooks& hooks);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
