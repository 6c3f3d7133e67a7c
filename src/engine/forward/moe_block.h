// One sparse layer of one step: score, ask for the decision, fetch, compute as experts arrive, sum in
// ascending id. SPEC §0, §5.1.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "engine/forward/common/workspace.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/forward/expert_rows.h"
#include "engine/forward/predictor.h"
#include "engine/forward/router_scores.h"
#include "engine/forward/sparse_block.h"
#include "engine/forward/unit/compute_unit.h"
#include "engine/forward/unit/host_unit.h"
#include "engine/session/step.h"
#include "engine/watch/routing_observer.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "experts/prefetch/prediction_check.h"
#include "experts/worlds.h"
#include "fetch/memory/expert_store.h"
#include "fetch/timeline.h"
#include "kernels/context.h"
#include "kernels/ops/ops.h"
#include "kernels/products/input_form.h"
#include "model/config.h"

namespace sluice::engine {

// Carries out what a LayerDecider decides, and counts it. Thread-compatible. All references must outlive it.
class MoeBlock final : public SparseBlock {
 public:
  // `low_view`: the view that a lone MSB slice stands for. `residual`: of gate inputs, or null. `ahead`: how
  // layers are computed ahead, if they are.
  // `ops`: of the unit that computes shared experts and sums; `host`: kernels of the host.
  MoeBlock(kernels::Ops& ops, const kernels::Context& host, const model::ModelConfig& config,
           const DenseWeights& weights, fetch::ExpertStore& store, codec::SliceView low_view,
           const experts::ResidualVectors* residual, std::optional<LayersAhead> ahead,
           Statistics& statistics);

  // `decider` must outlive this or its successor. Null, as at first: routed experts are left out, to measure
  // what a step costs without them (common/measure_profile.h).
  void decide_by(experts::LayerDecider* decider) { decider_ = decider; }
  // `device`: computes the experts that are assigned to it; the decider then has the policies of a device. It
  // must outlive this.
  void compute_on(ComputeUnit* device) { device_ = device; }          // null: there is none
  void pace_host_by(device::HostPace* pace) { host_.pace_by(pace); }  // as HostUnit::pace_by()
  // `observer` is called for every routing and every decision; null: no observer. It must outlive this or its
  // successor.
  void observe(RoutingObserver* observer) { observer_ = observer; }
  // Records when each expert was computed (null: stops).
  void record(fetch::Timeline* timeline) { timeline_ = timeline; }
  // How near predictions of routers' inputs came, of those that prefetches have followed.
  const experts::InputPrediction& input_prediction() const { return input_prediction_; }
  // Begins a step of the kind in Statistics. end_step() ends a step that did not fail.
  void begin_step(const Step& step);
  void resume_step(const Step& step);  // another step has run between its layers
  void end_step();
  void cancel_step(const Step& step);
  // w.branch = shared(normed) + Σ g·E(normed) for all tokens. Needs w.normed, which is w.hidden after `norm`,
  // and w.arranged in the forms that dense matrices read.
  void run(std::size_t layer, model::Role norm, const Step& step, const Workspace& w) override;

 private:
  // When a layer looks ahead: routed; with what is in memory computed; with all of it computed.
  enum class Moment : std::uint8_t { kRouted, kPartial, kComputed };

  const experts::LayerDecision& decide(std::size_t layer, const Step& step, const Workspace& w);
  // Begins the fetch of what was decided, and counts it.
  void begin_fetch(std::size_t layer, const Step& step, const experts::LayerDecision& decision);
  // Has those experts fetched to the host that the device was decided to have and lacks.
  void fetch_lost();
  void count_found(const experts::EventOutcome& outcome);
  ExpertStatistics& counts() { return statistics_.of(kind_); }  // counts of steps such as the running one
  void show_inputs(std::size_t layer, std::size_t tokens, const Workspace& w);  // to the observer
  // Arranges w.normed in the forms that only experts read.
  void arrange_for_experts(std::size_t tokens, const Workspace& w);
  void shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w);
  kernels::op::Mlp shared_mlp(std::size_t layer, std::size_t tokens, const Workspace& w) const;
  void gate_shared_experts(std::size_t layer, std::size_t tokens, const Workspace& w);
  // Gives the device what is assigned to it: what it has, then what the host has in memory, in the order of
  // its plan. Pins of the host's own experts go to pins_.
  void start_device(std::size_t layer, model::Role norm, const Step& step, const Workspace& w);
  void compute_on_device(experts::ExpertId id, std::optional<fetch::ExpertStore::Pin> pin, std::size_t tokens,
                         const Workspace& w);
  // Where the dense part is on the device and some experts are computed by the host: brings their inputs
  // here, and takes the rows there.
  void bring_inputs(std::size_t tokens, const Workspace& w);
  void send_rows(const Workspace& w);
  // Computes what next() hands out until nothing is left.
  void compute_the_rest(std::size_t tokens, const Workspace& w);
  // For one token: computes the shared experts together with all routed experts that need no read.
  void start_with_what_is_here(std::size_t layer, const Workspace& w);
  experts::Unit unit_of(experts::ExpertId id) const;  // where it is computed. REQUIRES: a token chose it
  // `pin`: of the expert's view on the host; null: there is none.
  ExpertWork work_of(experts::ExpertId id, const fetch::ExpertStore::Pin* pin,
                     const kernels::ArrangedInputs& inputs, const Workspace& w) const;
  // A row of the biases of the running layer's experts; empty if the architecture has none.
  std::span<const float> bias_of(model::Role role, std::size_t expert) const;
  // Inputs of these tokens, ascending, gathered unless they are all tokens.
  kernels::ArrangedInputs gather(std::span<const std::uint32_t> token_of_row, std::size_t tokens,
                                 const Workspace& w) const;
  // The host computes those of the expert's rows that have its pinned view, or those that are low beside it.
  void compute_rows(const fetch::ExpertStore::Pin& pin, bool low, std::size_t tokens, const Workspace& w);
  void compute_expert(fetch::ExpertStore::Pin pin, std::size_t tokens, const Workspace& w);
  // Calls compute() for these experts, and perhaps for the shared ones. Error(kCorrupt) names the place of a
  // damaged one.
  template <class Work>
  void compute_pinned(std::span<const fetch::ExpertStore::Pin> pins, const Work& work) const;
  std::chrono::steady_clock::time_point now() const;  // only if recording
  void record(experts::ExpertId id, std::chrono::steady_clock::time_point begin);
  void finish_device();
  [[noreturn]] void throw_damage_on_device(const Error& error) const;
  void combine(const experts::Routing& routing, const Workspace& w);
  // Names to the store what the next sparse layer may need: once, and once more when this one is computed.
  void look_ahead(std::size_t layer, model::Role norm, const Step& step, const Workspace& w, Moment moment);
  bool may_look_ahead();
  // Decides what is to be copied to the device for the next sparse layer.
  void look_ahead_on_device(std::size_t layer, model::Role norm, const Step& step, const Workspace& w,
                            Moment moment);
  void count_prediction(double seconds);                 // for a prefetch
  static Moment moment_of(experts::PredictorKind kind);  // from which on it can predict
  // Whether a prefetch waits for what is in memory to be computed.
  bool waits_for_partial_state() const;
  void look_ahead_partially(std::size_t layer, model::Role norm, const Step& step, const Workspace& w);
  // Computes the experts that need no read, and lists the rows of those that are resident by decision.
  void compute_resident(std::size_t tokens, const Workspace& w);
  void list_known(const experts::Routing& routing);
  bool is_known(experts::ExpertId id) const;
  // The scores of the next sparse layer, predicted once for all who ask in a row: the same part of the layer,
  // and no other scores between. Null for kNone.
  const experts::ScoresView* predict(experts::PredictorKind kind, std::size_t layer, model::Role norm,
                                     const Step& step, const Workspace& w, Moment moment);
  // Remembers the predicted input of the next sparse layer. Inputs on a device stay unknown: to bring them
  // here would hold it up.
  void expect_inputs(experts::PredictorKind kind, std::size_t layer, std::size_t tokens, const Workspace& w);
  // Shows the observer the scores that are predicted for the next sparse layer, if it wants them.
  void show_ahead(std::size_t layer, model::Role norm, const Step& step, const Workspace& w, Moment moment);

  kernels::Ops& ops_;
  const kernels::Context& kernels_;  // the host's
  const model::ModelConfig& config_;
  const DenseWeights& weights_;
  fetch::ExpertStore& store_;
  Statistics& statistics_;
  StepKind kind_ = StepKind::kPrompt;  // the kind of the running step
  experts::LayerDecider* decider_ = nullptr;
  RoutingObserver* observer_ = nullptr;
  fetch::Timeline* timeline_ = nullptr;
  std::int32_t layer_ = 0;  // that runs

  const kernels::InputForms input_forms_;  // the forms that experts read
  RouterScores scores_;
  Predictors predictors_;
  experts::PredictorKind predicted_by_ = experts::PredictorKind::kNone;  // what predicted …
  experts::ScoresView predicted_;                                        // … these
  experts::InputPrediction input_prediction_;
  std::vector<experts::PartRequest> ahead_;  // the running event's: what is to be copied to the device
  HostUnit host_;
  ComputeUnit* device_ = nullptr;
  const experts::DevicePlan* plan_ = nullptr;         // for the running event on the device; null without one
  const experts::LayerDecision* decision_ = nullptr;  // for the running event
  std::vector<experts::ExpertId> lost_;               // its experts that the device lacks …
  std::vector<experts::ExpertId> given_;              // … and those that it was given …
  std::size_t resident_given_ = 0;                // … of which this many without bytes of the host's, first
  std::vector<experts::ExpertId> event_experts_;  // ascending
  ExpertRows rows_;
  std::vector<kernels::op::WeightedRow> sums_;   // what is summed, ascending by expert for each token …
  std::vector<kernels::op::WeightedRow> known_;  // … and those of it that are known before all is computed
  std::vector<std::uint8_t> computed_;           // by slot of rows_: the host has computed it
  std::vector<experts::SequenceSpan> spans_;     // spans of the running step …
  experts::Worlds* worlds_ = nullptr;            // … and whose it is
  std::span<const experts::Unit> assignment_;    // by slot of rows_; empty: all on the host
  std::vector<ExpertWork> works_;                // that are computed together
  std::vector<fetch::ExpertStore::Pin> pins_;    // pins of experts that need no read
  // As they were when the running step began.
  Stopwatch step_watch_;
  Bytes needed_before_ = 0, wasted_before_ = 0;
  Stopwatch moe_watch_;  // since the running layer's scores were there
};

}  // namespace sluice::engine
