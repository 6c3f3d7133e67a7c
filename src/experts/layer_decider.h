// How one sparse layer of one step is decided: routing, precision, placement, the limits on loss and misses,
// the residencies of device and host, the order of reads, and what to read ahead for the next layer. The one
// place that knows in which order policies are asked: the engine carries the decisions out, the replays of
// the lab clock or count them. Pure: no I/O, no clock, no threads, no kernels. docs/architecture.md, "One
// token".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/residency.h"
#include "experts/core/demand.h"
#include "experts/core/sequence_span.h"
#include "experts/device_decider.h"
#include "experts/device_plan.h"
#include "experts/layer_policies.h"
#include "experts/placement/placement.h"
#include "experts/prefetch/prediction_check.h"
#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/prefetch_switch.h"
#include "experts/routing/precision.h"
#include "experts/routing/router.h"
#include "experts/routing/routing_changes.h"
#include "experts/schedule/read_order.h"
#include "experts/tier_exchange.h"

namespace sluice::experts {

// The sparse layers of a model.
struct SparseShape {
  std::uint32_t layers = 0;
  std::uint32_t top_k = 0;  // experts of a token, by the model's own rule
  // The first layers, if they are an encoder's: the event behind one of theirs is mostly that layer's next
  // chunk, so that nothing is read ahead there.
  std::uint32_t encoder_layers = 0;
};

// One layer of one step, decided.
struct LayerDecision {
  Routing routing;                    // with the wanted precisions
  std::vector<ExpertId> experts;      // the event: the experts that some token chose, ascending …
  std::vector<std::uint32_t> tokens;  // … and how many tokens chose each
  // Where each of `experts` is computed; empty without a placement: on the host.
  Assignment assignment;
  SliceDemand slices;  // what the event asks of the residency; empty without slices
  const EventOutcome* outcome = nullptr;
  // What happens on the device; null without one. Then the host's residency is asked about those experts
  // alone whose bytes are needed from the host: the host computes them, or they are copied from there.
  const DevicePlan* device = nullptr;
  // What is to be fetched to the host, and for how many tokens: the experts that its residency was asked
  // about, or under LayerPolicies::whole_layers all experts of the layer.
  const EventOutcome* fetch = nullptr;
  Demand fetch_demand;
  // For slices in decode steps, else empty and 0: by expert of the layer, whether it is computed at low
  // precision; and the sum over the tokens of the share of their weight that is.
  std::vector<std::uint8_t> is_low;
  double low_share = 0;
};

// What is known of an event beside its experts, where it is given without a routing. 0: unknown.
struct EventSize {
  std::uint32_t experts = 0;  // how many its layer has
  std::uint32_t tokens = 0;   // how many its step has
};

// One per run. Calls come in this order:
//
//   begin_step
//     route or follow, decide;            for each event: the tokens of one sparse layer
//     fetch_lost, order
//     may_look_ahead, look_ahead
//   end_step, or cancel_step if it failed
//
// Between the events of a step another step may run to its end; resume_step goes on. A step that has prompt
// tokens is a prompt's step for all that is decided once for the step or the event: the precision of its
// experts, the limit on misses, whether reading ahead is on trial. Routing and the loss are decided and
// counted token by token.
//
// Routing and deciding are two calls, because an observer may refuse a routing: until decide() no residency
// has changed. In a steady state nothing is allocated. Thread-compatible.
class LayerDecider {
 public:
  // REQUIRES: one residency of the host, or one per layer; of a device likewise, and then a placement, no
  // whole layers, and for experts in slices DevicePolicies::slices.
  LayerDecider(LayerPolicies policies, const SparseShape& shape);
  LayerDecider(const LayerDecider&) = delete;  // its parts refer to each other
  LayerDecider& operator=(const LayerDecider&) = delete;

  // The spans of the step; need not live longer than the call.
  void begin_step(std::span<const SequenceSpan> spans);
  void resume_step(std::span<const SequenceSpan> spans);
  void end_step(const StepCost& cost = {});
  // A step that has begun will not end: its tokens may come again. Not called while another step runs.
  void cancel_step(std::span<const SequenceSpan> spans);
  // All that policies remember of the sequence goes. No step has its tokens.
  void end_sequence(SequenceId sequence);

  // Asks the router, or takes the routing that is given: for each token its choices, as in Routing. Then the
  // precisions are set. REQUIRES: the spans of `scores` are of the step's kind. What `scores` views must live
  // until decide() returns. The result is valid until the next routing. Errors as Router::route.
  const Routing& route(const ScoresView& scores);
  const Routing& follow(const ScoresView& scores, std::span<const Choice> choices,
                        std::span<const std::uint32_t> begin);
  // Takes an event of which only the experts and their numbers of tokens are known, as lists of requests have
  // them: caches see no scores. REQUIRES: ascending ids of this layer, and policies without slices, miss
  // constraint and guard; for whole layers EventSize::experts as well. Caches that learn go by both sizes.
  void follow(std::uint32_t layer, const Demand& event, const EventSize& size = {});
  // Decides the event of the routed layer. The result is valid until the next routing.
  const LayerDecision& decide();
  // Fetches to the host, too, what the decided event counts on from the device and what is not there: copies
  // fail and are given up, of which only the store of the device knows. Adds to `fetch` and `fetch_demand` of
  // the decision, at most once an event; no residency changes. REQUIRES: `lost` are used by the device, and
  // their bytes do not come from the link (DeviceUse::from).
  void fetch_lost(std::span<const ExpertId> lost);
  // In which order to read what is missing of the decided event. Only the store that carries the decision out
  // knows what is missing: residency is logical, and reads that are under way arrive when they do. Valid
  // until the next call.
  const ReadOrder& order(std::span<const MissingExpert> missing);

  // Whether to read ahead for the next layer; asked once an event. If kOn, look_ahead() names the parts, most
  // useful first, without a change of residency, and none that the device has; valid until the next call.
  // Where looks_twice(), it is to be called again once the layer has been computed: the later answer replaces
  // the earlier one. `next`: the scores that predictor() predicts for the next sparse layer; null where that
  // is kNone.
  // Not to be asked in an encoder's layer.
  bool in_encoder() const { return scores_.layer < shape_.encoder_layers; }
  ReadAhead may_look_ahead(const AheadBytes& so_far) { return switch_.at_event(so_far); }
  PredictorKind predictor() const;
  bool looks_twice() const {
    return switch_.verdict() == ReadAhead::kOn && predictor() == PredictorKind::kStream;
  }
  std::span<const PartRequest> look_ahead(const ScoresView* next);

  // The experts of the next layer that are to be copied to the device while the link is idle: to be called
  // once an event, behind decide(), where the device has a prefetch. The modelled clock sends them. Empty for
  // a layer whose prefetches are paused (LayerGuards). `next`: the scores that device_predictor() predicts;
  // null where that is kNone. Valid until the next call.
  bool prefetches_to_device() const { return policies_.device && policies_.device->prefetch; }
  PredictorKind device_predictor() const;
  std::span<const PartRequest> look_ahead_on_device(const ScoresView* next);

  const LayerPolicies& policies() const { return policies_; }
  // What the device's cache begins with, its counts, and the modelled clock; null without a device.
  const DeviceDecider* device() const { return device_.get(); }
  // How predictions of next layers came true, of those that look_ahead_on_device() has followed; without a
  // prefetch to a device, look_ahead(). Counted with the layer that was predicted: x is predicted_top().
  // Nothing is counted where the prefetch follows no predicted scores, and where another step ran in between.
  const PredictionCounts& predictions(StepKind kind) const {
    return kind == StepKind::kPrompt ? prompt_predictions_ : decode_predictions_;
  }
  // As many experts as are copied to a device ahead, at most; else as DALI would copy (usual_prefetch_size).
  std::uint32_t predicted_top() const;
  // How routers have changed the model's routing so far: in all steps, and in decode steps.
  const RoutingChanges& changes() const { return changes_; }
  const RoutingChanges& decode_changes() const { return decode_changes_; }
  // Whether read-ahead pays, as decode steps have shown; null without read-ahead.
  const PrefetchTrial* prefetch_trial() const { return switch_.trial(); }

 private:
  void take_up(std::span<const SequenceSpan> spans);  // the step becomes the running one
  const Routing& routed();                            // what follows any routing
  void count_changes();
  void group_by_expert();
  void average_scores();
  void find_low();
  Parts certain_parts() const;  // for experts of the next event
  bool looks_ahead() const;     // from this layer to the next one
  PredictorKind predictor_of(const Prefetch* prefetch) const;
  void expect(Prefetch& prefetch);  // what it has just foretold
  void check_prediction();
  std::uint32_t next_layer() const;
  LayerState state_of(const ResidencyView& residency, const ScoresView* next) const;
  void assign();
  void decide_device();
  EventPlace place() const;
  std::size_t place_of(ExpertId used) const;  // in the event
  void find_host_event();
  void list_host_event();
  bool excludes() const;  // an expert is in one tier alone
  void widen_to_layer();

  LayerPolicies policies_;
  SparseShape shape_;
  PrefetchSwitch switch_;
  RoutingChanges changes_, decode_changes_;
  std::vector<SequenceSpan> step_spans_;
  StepKind step_ = StepKind::kPrompt;  // kPrompt: the running step has prompt tokens
  // The running event.
  bool is_routed_ = false;  // and not yet decided
  ScoresView scores_;
  LayerDecision decision_;
  std::vector<std::uint32_t> tokens_of_;  // (N)
  std::vector<float> mean_scores_;        // (N) over the tokens
  SliceDemands demands_;
  std::vector<PartRequest> proposals_;
  ReadOrder order_;
  std::unique_ptr<DeviceDecider> device_;
  std::vector<double> t_host_;              // what placement sees of the event's experts without a device
  std::vector<ExpertId> host_experts_;      // those whose bytes the host must have …
  std::vector<std::uint32_t> host_tokens_;  // … and their tokens
  std::vector<std::uint8_t> needed_;        // by place in the event
  std::vector<Parts> asked_;                // slices, likewise; empty without
  TierExchanger exchanger_;
  TierExchange exchange_;  // the running event's
  std::vector<PartRequest> device_proposals_;
  TopPrediction prediction_;
  PredictionCounts prompt_predictions_, decode_predictions_;
  std::vector<double> prediction_scores_;  // (N)
  EventOutcome fetch_outcome_;             // where more is fetched than the residency was asked about
  std::vector<ExpertId> layer_experts_;    // all N of a whole layer
};

}  // namespace sluice::experts
