// What a LayerDecider decides about a device beside the host: where the experts of an event are computed,
// what the device's cache takes in, and how long its copies take on a modelled clock. SPEC §3.2 to §3.6 and
// §10 (G8).
//
// Copies are on the link for a while, so what is there depends on time. Decisions never see a real clock:
// they see this one, which runs over the costs of a profile, for the engine as for replays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experts/core/demand.h"
#include "experts/device_plan.h"
#include "experts/device_slices.h"
#include "experts/layer_policies.h"
#include "experts/prefetch/layer_guards.h"
#include "experts/prefetch/prefetch.h"
#include "experts/schedule/hybrid_timeline.h"

namespace sluice::experts {

// What became of the experts that were copied before anybody asked for them. Sent are counted with the event
// that names them, all else with the next one, for which they are meant.
struct PrefetchCounts {
  std::uint64_t asked = 0;   // events that could name some: theirs is not the last layer …
  std::uint64_t paused = 0;  // … and of these those that might not (LayerGuards)
  std::uint64_t sent = 0;    // given to the link
  std::uint64_t used = 0;    // the device computed them …
  std::uint64_t late = 0;    // … though the copy had not ended when that was decided
  std::uint64_t kept = 0;    // not used, but the cache brought them in
  std::uint64_t wasted = 0;  // all others; the link may never have begun some of them
};

// Counts over the events of one kind of step. "Resident": in a slot, though the copy may be under way.
struct DeviceCounts {
  std::uint64_t events = 0;
  std::uint64_t active = 0, resident = 0;         // experts, wherever they are computed
  std::uint64_t tokens = 0, resident_tokens = 0;  // the same, weighted with their tokens
  std::uint64_t assigned = 0, hits = 0;           // to the device; of these resident
  std::uint64_t loads = 0, streamed = 0;          // copies of this event that stay, and that do not
  std::uint64_t updates = 0;                      // copies for the cache
  // Where tiers exclude each other: experts that placement gave to the host, and that the device computes
  // because it alone has them; that left the device; and that the host then adopted: copies upwards. `late`:
  // that were waited for.
  std::uint64_t there_alone = 0, dropped = 0, returns = 0, late_returns = 0;
  PrefetchCounts prefetch = {};
  double host = 0, device = 0, imbalance = 0;  // time of both sides: experts alone; |host - device|
  double wait = 0;                             // the device waits for the link, or for the host
  double moe = 0;                              // from gate to the sum of the outputs
  double layers = 0;                           // from gate to gate
  double d_hit() const { return ratio(hits, assigned); }
  double a_hit() const { return ratio(resident, active); }
  double token_hit() const { return ratio(resident_tokens, tokens); }

 private:
  static double ratio(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

// The running event. Non-owning.
struct DeviceEvent {
  Demand demand;
  EventPlace place;
  std::uint32_t step_tokens = 0;    // tokens of the event
  std::uint32_t prompt_tokens = 0;  // prompts' tokens among these
  bool precedes = false;            // another layer follows, for which some may be prefetched
  PredictorKind predicted_by = PredictorKind::kNone;  // on the device, what that one will need
  std::span<const float> mean_scores = {};            // (N); may be empty
  // The host's, where tiers exclude each other; else null.
  const ResidencyView* host = nullptr;
  std::span<const Parts> asked = {};  // slices that are asked for of each expert; empty: experts are whole
};

// For each event decide(); exchange() where tiers exclude each other; prefetch(), at most once; the next
// decide() or end_layer() ends the layer on the clock. Allocates nothing in a steady state.
// Thread-compatible.
class DeviceDecider {
 public:
  // All must outlive this.
  DeviceDecider(DevicePolicies& policies, Placement& placement, const ExpertCosts& costs);

  // What the caches begin with, in order; to be copied before the first event, which is not on the clock.
  const std::vector<DeviceUpdate>& start() const { return start_; }

  // Assigns the experts, asks the device's cache about those that are its own, and says how each gets there.
  // Both results are valid until the next call.
  const DevicePlan& decide(const DeviceEvent& event, Assignment& assignment);
  // What the host's residency has decided about the event: what it adopts goes up the link, and what it needs
  // or drops of that is waited for, or given up.
  void exchange(const EventOutcome& host);
  // Whether the running event may name experts for the next one: not those that the host computes anyway.
  bool may_prefetch() const { return may_prefetch_; }
  // Experts of the next event, most useful first: those that the device lacks are sent while the link is
  // idle. REQUIRES: may_prefetch().
  void prefetch(std::span<const PartRequest> experts);
  // Ends the layer that was decided last.
  void end_layer();

  // The clock, behind the last layer that has ended.
  const HybridTimeline& clock() const { return clock_; }
  const DeviceCounts& counts(StepKind kind) const { return kind == StepKind::kPrompt ? prompt_ : decode_; }
  const DevicePlan& plan() const { return plan_; }

 private:
  DeviceCounts& now() { return kind_ == StepKind::kPrompt ? prompt_ : decode_; }
  double remaining(ExpertId id) const { return clock_.remaining(id); }
  bool is_prefetched(ExpertId id) const;
  DeviceBytes bytes_of(ExpertId id, Parts view, const Residency& residency) const;
  double load_time(ExpertId id, Parts view) const;  // for what the device lacks
  bool may_read_in_place(ExpertId id) const;        // if it does not stay
  double prefetch_time(Parts parts) const;
  DeviceUpdate update_of(ExpertId id);
  void begin_layer(const DeviceEvent& event);
  double prediction_time(const DeviceEvent& event) const;  // for predicting the next layer, on the device
  bool judge_prefetches(const DeviceEvent& event);
  void find_views(const DeviceEvent& event);
  void price(const DeviceEvent& event, const Residency& residency);
  // Nobody else could compute it without a read.
  void keep_there(const DeviceEvent& event, Assignment& assignment);
  void find_uses(const DeviceEvent& event, const Assignment& assignment, const Residency& residency);
  void take_outcome(const EventOutcome& outcome);
  void count_prefetches();
  void order_uses();
  void gather_work();

  DevicePolicies& policies_;
  Placement& placement_;
  const ExpertCosts& costs_;
  HybridTimeline clock_;
  std::vector<DeviceUpdate> start_;
  DevicePlan plan_;
  DeviceCounts prompt_, decode_;
  StepKind kind_ = StepKind::kDecode;
  bool open_ = false;  // a layer is decided and has not ended
  LayerGuards guards_;
  bool may_prefetch_ = true;
  std::uint32_t layer_ = 0, named_by_ = 0;  // the running event's; the one that named prefetched_
  std::vector<ExpertId> prefetched_;        // for the running event, ascending …
  std::vector<ExpertId> next_prefetched_;   // … and for the next one
  Parts prefetched_parts_, next_parts_;     // parts of each of these
  std::optional<SlicesOnDevice> slices_;    // empty: experts are whole
  std::vector<Parts> views_;                // for the event's experts; without slices they are empty
  // What placement sees, parallel to the event's experts.
  std::vector<double> t_host_, t_device_, transfer_;
  std::vector<std::uint8_t> on_device_;
  std::vector<ExpertId> assigned_;
  std::vector<std::uint32_t> assigned_tokens_;
  // The layer's work.
  double shared_ = 0, rows_ = 0;
  std::vector<double> host_times_, resident_times_;
  std::vector<LinkLoad> loads_;
  std::vector<LinkTransfer> prefetches_, updates_, returns_;
};

}  // namespace sluice::experts
