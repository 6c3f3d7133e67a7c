// One sparse layer of one step: route, decide, fetch, compute as experts arrive, sum in ascending id. SPEC
// §0, §5.1.
#pragma once

#include <array>
#include <chrono>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "engine/forward/dense_weights.h"
#include "engine/forward/mlp.h"
#include "engine/forward/workspace.h"
#include "engine/plan/options.h"
#include "engine/session/step.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "experts/layer_policies.h"
#include "experts/prefetch/prefetch_guard.h"
#include "experts/prefetch/prefetch_trial.h"
#include "experts/routing/precision.h"
#include "fetch/expert_store.h"
#include "fetch/timeline.h"
#include "kernels/context.h"
#include "kernels/products/packed/packed_matmul.h"
#include "model/config.h"

namespace sluice::engine {

// Thread-compatible. All references must outlive it.
class MoeBlock {
 public:
  MoeBlock(const kernels::Context& kernels, const model::ModelConfig& config, const DenseWeights& weights,
           fetch::ExpertStore& store, experts::LayerPolicies& policies, codec::SliceView low_view,
           Statistics& statistics);

  // Leaves out the routed experts, to measure what a step costs without them (measure_profile.h).
  void leave_out_experts(bool leave_out) { leave_out_experts_ = leave_out; }
  // `observer` is called for every routing and every decision; null: no observer. It must outlive this or its
  // successor.
  void observe(RoutingObserver* observer) { observer_ = observer; }
  // Records when each expert was computed (null: stops).
  void record(fetch::Timeline* timeline) { timeline_ = timeline; }
  void begin_forward() { policies_.router->begin_forward(); }
  // Begins a step of the phase in Statistics; `first_of_generation`: the step before was a prompt's.
  // end_step() ends a step that did not fail.
  void begin_step(bool first_of_generation);
  void end_step();
  // Whether read-ahead pays, as found in decode steps; null without read-ahead.
  const experts::PrefetchTrial* prefetch_trial() const { return reads_ahead_ ? &trial_ : nullptr; }
  // w.branch = shared(normed) + Σ g·E(normed) for all tokens. Needs w.normed and w.packed, which are w.hidden
  // after `norm`.
  void run(std::size_t layer, model::Role norm, const Step& step, const Workspace& w);

 private:
  experts::ScoresView route(std::size_t layer, const Step& step, const Workspace& w);
  const experts::EventOutcome& decide(const experts::ScoresView& scores, const Workspace& w);
  void count_found(const experts::EventOutcome& outcome);
  void count_low(const experts::EventOutcome& outcome);  // for a decode step, for slices
  // The input of routed experts: w.packed, or w.packed_slices for slices; and one row of it.
  const float* packed_of(const Workspace& w) const;
  std::size_t packed_row() const;
  void group_by_expert(std::size_t sparse_layer);
  fetch::EventReads begin_fetch(std::size_t sparse_layer, const experts::EventOutcome& outcome);
  using PackedChunks = std::array<std::vector<kernels::PackedChunk>, 3>;

  void shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w);
  Mlp shared_mlp(std::size_t layer, const Workspace& w) const;
  void gate_shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w);
  // For one token: computes the shared experts together with all routed experts that need no read.
  void start_with_what_is_here(std::size_t layer, const Workspace& w);
  bool is_used(experts::ExpertId id) const;  // whether some token chose it
  Mlp mlp_of(const fetch::ExpertStore::Pin& pin, PackedChunks& chunks, const float* packed,
             const Workspace& w) const;
  void compute_expert(const fetch::ExpertStore::Pin& pin, const Workspace& w);
  // Calls compute() for these experts, and perhaps for the shared ones. Error(kCorrupt) names the place of a
  // damaged one.
  template <class Work>
  void compute_pinned(std::span<const fetch::ExpertStore::Pin> pins, const Work& work) const;
  std::chrono::steady_clock::time_point now() const;  // only if recording
  void record(const fetch::ExpertStore::Pin& pin, std::chrono::steady_clock::time_point begin);
  void combine(std::size_t tokens, const Workspace& w);
  bool on_trial() const;  // a decode step that may read ahead
  // Names to the store what the next sparse layer may need; once more when this one is `computed`.
  void look_ahead(std::size_t layer, model::Role norm, const Step& step, const Workspace& w, bool computed);
  // Scores of the router of `next` for the current stream, in w.router_logits and w.scores.
  experts::ScoresView next_scores(std::size_t next, model::Role norm, std::size_t tokens, const Workspace& w,
                                  bool computed);
  void score(std::size_t layer, const float* normed, std::size_t tokens, const Workspace& w);

  const kernels::Context& kernels_;
  const model::ModelConfig& config_;
  const DenseWeights& weights_;
  fetch::ExpertStore& store_;
  experts::LayerPolicies& policies_;
  const codec::SliceView low_view_;  // the view that a lone MSB slice stands for
  Statistics& statistics_;
  RoutingObserver* observer_ = nullptr;
  fetch::Timeline* timeline_ = nullptr;

  experts::Routing routing_;
  std::vector<experts::ExpertId> active_;         // ascending
  std::vector<std::uint32_t> active_tokens_;      // parallel to active_: w
  std::vector<std::uint32_t> slot_of_expert_;     // (N) index into active_
  std::vector<std::uint32_t> begin_;              // (active + 1) rows of expert_rows of each active expert
  std::vector<std::uint32_t> token_of_row_;       // (rows)
  std::vector<std::uint32_t> row_of_choice_;      // (choices)
  std::vector<std::uint32_t> row_fill_;           // (active) next free row while grouping
  std::vector<std::uint8_t> is_low_;              // (N) computed at low precision in this event
  std::vector<std::uint32_t> sequence_of_token_;  // (T)
  experts::Assignment assignment_;
  experts::SliceDemands slice_demands_;
  std::vector<experts::PartRequest> proposals_;
  // Read-ahead.
  const bool reads_ahead_;  // by any policy
  experts::PrefetchGuard guard_;
  experts::PrefetchTrial trial_;
  bool trial_allows_ = true;   // in this step
  bool may_prefetch_ = true;   // so does the guard, for this event
  bool done_as_asked_ = true;  // the guard has not paused what the trial wanted in this step
  fetch::PrefetchCounters ahead_before_;
  Stopwatch step_watch_;
  Bytes needed_before_ = 0, wasted_before_ = 0;  // when the step began
  std::vector<Mlp> mlps_;                        // that are computed together
  std::vector<fetch::ExpertStore::Pin> pins_;    // of their routed experts
  std::vector<PackedChunks> chunks_;             // of each, if it is packed
  bool leave_out_experts_ = false;
  experts::EventOutcome whole_outcome_;  // for LayerPolicies::whole_layers: the outcome for all N experts
  std::vector<experts::ExpertId> whole_layer_;
  std::vector<std::uint32_t> whole_tokens_;
};

}  // namespace sluice::engine
