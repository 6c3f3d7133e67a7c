#include "experts/device_decider.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace sluice::experts {

DeviceDecider::DeviceDecider(DevicePolicies& policies, Placement& placement, const ExpertCosts& costs)
    : policies_(policies), placement_(placement), costs_(costs), clock_(costs.device.full_duplex) {
  if (policies.slices) slices_.emplace(*policies.slices);
  for (const auto& residency : policies.residencies) {
    SLUICE_CHECK(residency->tier() == Tier::kDevice, "the device's residency is of another tier");
    for (const Update& one : residency->start().updates) {
      start_.push_back({one.id, DeviceBytes::kLink, costs.device.transfer});
      if (!slices_) continue;
      start_.back().parts = slices_->rules().room;
      slices_->brought(one.id, slices_->rules().room);
    }
  }
}

const DevicePlan& DeviceDecider::decide(const DeviceEvent& event, Assignment& assignment) {
  end_layer();
  begin_layer(event);
  Residency& residency = policies_.residency(event.place.layer);
  find_views(event);
  price(event, residency);
  const bool by_prefill = policies_.prefill_placement != nullptr && event.prompt_tokens > 0 &&
                          event.prompt_tokens >= policies_.prefill_from;
  Placement& placement = by_prefill ? *policies_.prefill_placement : placement_;
  if (policies_.leaves_out(event.place.layer))
    assignment.unit.assign(event.demand.experts.size(), Unit::kHost);
  else
    placement.assign(event.demand,
                     {.phase = event.place.step,
                      .t_host = t_host_,
                      .t_device = t_device_,
                      .transfer = transfer_,
                      .on_device = on_device_,
                      .slots = policies_.slots},
                     assignment);
  SLUICE_CHECK(assignment.unit.size() == event.demand.experts.size(),
               placement.name() + " leaves experts without a place");
  if (event.host != nullptr) keep_there(event, assignment);
  find_uses(event, assignment, residency);
  EventPlace where = event.place;
  where.link_idle = clock_.idle();
  take_outcome(residency.on_event(assigned_, event.mean_scores, assigned_tokens_, {}, where));
  count_prefetches();
  order_uses();
  gather_work();
  return plan_;
}

void DeviceDecider::begin_layer(const DeviceEvent& event) {
  kind_ = event.place.step;
  prefetched_.swap(next_prefetched_);
  next_prefetched_.clear();
  prefetched_parts_ = next_parts_;
  std::ranges::sort(prefetched_);
  named_by_ = std::exchange(layer_, event.place.layer);
  may_prefetch_ = judge_prefetches(event);
  const DeviceCosts& device = costs_.device;
  const double prediction = may_prefetch_ ? prediction_time(event) : 0;
  guards_.add(layer_, 0, prediction);
  clock_.decide({.sync = device.sync,
                 .policy = device.policy,
                 .launch = device.launch,
                 .predict = prediction,
                 .next_gate = device.gate.of(event.step_tokens)});
  shared_ = device.shared.of(event.step_tokens);
  open_ = true;
}

double DeviceDecider::prediction_time(const DeviceEvent& event) const {
  if (event.predicted_by == PredictorKind::kNone) return 0;
  const DeviceCosts& device = costs_.device;
  const bool attends = event.predicted_by == PredictorKind::kPartial;  // the next layer's attention, too
  return (attends ? device.gate.of(event.step_tokens) : device.predict) + 2 * device.stream_switch;
}

bool DeviceDecider::judge_prefetches(const DeviceEvent& event) {
  if (!policies_.prefetch || !event.precedes) return true;
  if (policies_.leaves_out(event.place.layer + 1)) return false;
  PrefetchCounts& counts = now().prefetch;
  counts.asked += 1;
  if (!policies_.guards_prefetch || guards_.allows(layer_)) return true;
  counts.paused += 1;
  return false;
}

bool DeviceDecider::is_prefetched(ExpertId id) const { return std::ranges::binary_search(prefetched_, id); }

DeviceBytes DeviceDecider::bytes_of(ExpertId id, Parts view, const Residency& residency) const {
  if (residency.computable(id) && (!slices_ || slices_->parts(id).has_all(view))) return DeviceBytes::kSlot;
  return is_prefetched(id) && prefetched_parts_.has_all(view) ? DeviceBytes::kPrefetch : DeviceBytes::kLink;
}

double DeviceDecider::load_time(ExpertId id, Parts view) const {
  if (!slices_) return costs_.device.transfer;
  const Parts there = slices_->parts(id);  // though its copy may be under way
  return costs_.device.transfer_of(view - there) + (there.empty() ? 0 : remaining(id));
}

bool DeviceDecider::may_read_in_place(ExpertId id) const {
  return costs_.device.in_place && (!slices_ || slices_->parts(id).empty());
}

double DeviceDecider::prefetch_time(Parts parts) const {
  return slices_ ? costs_.device.transfer_of(parts) : costs_.device.transfer;
}

void DeviceDecider::find_views(const DeviceEvent& event) {
  views_.assign(event.demand.experts.size(), {});
  if (!slices_) return;
  SLUICE_CHECK(event.asked.size() == views_.size(), "an event does not say which slices it asks for");
  for (std::size_t i = 0; i < views_.size(); ++i)
    views_[i] = slices_->view(event.demand.experts[i], event.asked[i]);
}

void DeviceDecider::price(const DeviceEvent& event, const Residency& residency) {
  t_host_.clear();
  t_device_.clear();
  transfer_.clear();
  on_device_.clear();
  for (std::size_t i = 0; i < event.demand.experts.size(); ++i) {
    const ExpertId id = event.demand.experts[i];
    const DeviceBytes from = bytes_of(id, views_[i], residency);
    // Whether it stays is not known yet: placement sees what computing costs, not what keeping does.
    const double load = may_read_in_place(id) ? 0 : load_time(id, views_[i]);
    const double left = from == DeviceBytes::kLink ? load : remaining(id);
    // A prefetch that has not begun is withdrawn unless the expert is loaded now (SPEC §10, G3).
    const bool begun = left == 0 || left < prefetch_time(prefetched_parts_);
    const bool there = from == DeviceBytes::kSlot || (from == DeviceBytes::kPrefetch && begun);
    t_host_.push_back(costs_.run.of(event.demand.tokens[i]));
    t_device_.push_back(costs_.device.run.of(event.demand.tokens[i]));
    transfer_.push_back(left);
    on_device_.push_back(there ? 1 : 0);
  }
}

void DeviceDecider::keep_there(const DeviceEvent& event, Assignment& assignment) {
  for (std::size_t i = 0; i < assignment.unit.size(); ++i) {
    if (assignment.unit[i] == Unit::kDevice || on_device_[i] == 0) continue;
    if (!event.host->parts(event.demand.experts[i]).empty()) continue;
    assignment.unit[i] = Unit::kDevice;
    now().there_alone += 1;
  }
}

void DeviceDecider::find_uses(const DeviceEvent& event, const Assignment& assignment,
                              const Residency& residency) {
  plan_.clear();
  assigned_.clear();
  assigned_tokens_.clear();
  host_times_.clear();
  rows_ = 0;
  DeviceCounts& counts = now();
  counts.events += 1;
  for (std::size_t i = 0; i < event.demand.experts.size(); ++i) {
    const ExpertId id = event.demand.experts[i];
    const std::uint32_t tokens = event.demand.tokens[i];
    const DeviceBytes from = bytes_of(id, views_[i], residency);
    const bool resident = from == DeviceBytes::kSlot;
    counts.active += 1;
    counts.tokens += tokens;
    counts.resident += resident ? 1 : 0;
    counts.resident_tokens += resident ? tokens : 0;
    if (assignment.unit[i] == Unit::kHost) {
      rows_ += costs_.device.row * tokens;
      host_times_.push_back(t_host_[i]);
      continue;
    }
    counts.assigned += 1;
    counts.hits += resident ? 1 : 0;
    assigned_.push_back(id);
    assigned_tokens_.push_back(tokens);
    if (slices_ && from == DeviceBytes::kLink)
      clock_.withdraw(id);  // some of its slices, which this replaces
    plan_.uses.push_back(
        {.id = id, .tokens = tokens, .from = from, .remaining = transfer_[i], .view = views_[i]});
  }
}

void DeviceDecider::take_outcome(const EventOutcome& outcome) {
  DeviceCounts& counts = now();
  for (const auto* used : {&outcome.hits, &outcome.misses})
    for (const Admission& one : *used) {
      DeviceUse& use = *std::ranges::lower_bound(plan_.uses, one.id, {}, &DeviceUse::id);
      use.stays = is_computable(one.parts);
      if (use.stays && use.from == DeviceBytes::kLink && may_read_in_place(use.id))
        use.remaining = load_time(use.id, use.view);
      if (slices_) slices_->used(use.id, use.view, use.stays);
      if (use.from != DeviceBytes::kLink) continue;
      (use.stays ? counts.loads : counts.streamed) += 1;
    }
  plan_.evicted = outcome.evicted;
  for (const Eviction& gone : outcome.evicted) {
    clock_.withdraw(gone.id);
    if (slices_) slices_->gone(gone.id);
  }
  updates_.clear();
  for (const Update& one : outcome.updates) {
    const DeviceUpdate update = update_of(one.id);
    counts.updates += update.from == DeviceBytes::kLink ? 1 : 0;
    plan_.updates.push_back(update);
    if (update.remaining > 0) updates_.push_back({one.id, update.remaining});
  }
}

DeviceUpdate DeviceDecider::update_of(ExpertId id) {
  DeviceUpdate update{id, DeviceBytes::kLink, costs_.device.transfer};
  if (slices_) {
    update.parts = slices_->rules().least;
    update.remaining = costs_.device.transfer_of(update.parts);
    slices_->brought(id, update.parts);
  }
  if (!is_prefetched(id)) {
    clock_.withdraw(id);  // a copy that a pass asked for which has been suspended since
    return update;
  }
  SLUICE_CHECK(prefetched_parts_.has_all(update.parts), "a prefetch brings less than any use needs");
  update.from = DeviceBytes::kPrefetch;
  update.remaining = remaining(id);
  clock_.withdraw(id);
  return update;
}

void DeviceDecider::count_prefetches() {
  PrefetchCounts& counts = now().prefetch;
  std::uint64_t used = 0, kept = 0;
  double saved = 0, in_vain = 0;  // time of copies: what need not be sent any more, and what nobody wants
  const double whole = prefetch_time(prefetched_parts_);
  for (const ExpertId id : prefetched_) in_vain += whole - remaining(id);
  const auto count = [&](ExpertId id, double left, std::uint64_t& counted) {
    ++counted;
    saved += whole - left;
    in_vain -= whole - remaining(id);
  };
  for (const DeviceUse& use : plan_.uses) {
    if (use.from != DeviceBytes::kPrefetch) continue;
    count(use.id, use.remaining, used);
    counts.late += use.remaining > 0 ? 1 : 0;
  }
  for (const DeviceUpdate& update : plan_.updates)
    if (update.from == DeviceBytes::kPrefetch) count(update.id, update.remaining, kept);
  counts.used += used;
  counts.kept += kept;
  counts.wasted += prefetched_.size() - used - kept;
  guards_.add(named_by_, saved, std::max(0.0, in_vain));
}

void DeviceDecider::order_uses() {
  const auto order = [&](const DeviceUse& use) {
    const bool to_send = use.from == DeviceBytes::kLink, there = !to_send && use.remaining == 0;
    return std::tuple(there     ? 0
                      : to_send ? 2
                                : 1,
                      there     ? 0
                      : to_send ? -costs_.device.run.of(use.tokens)
                                : use.remaining,
                      use.id);
  };
  std::ranges::sort(plan_.uses, [&](const DeviceUse& a, const DeviceUse& b) { return order(a) < order(b); });
}

void DeviceDecider::gather_work() {
  resident_times_.clear();
  loads_.clear();
  prefetches_.clear();
  returns_.clear();
  for (const DeviceUse& use : plan_.uses) {
    const double compute = costs_.device.run.of(use.tokens);
    if (use.remaining > 0)
      loads_.push_back({use.id, use.remaining, compute});
    else
      resident_times_.push_back(compute);
  }
}

void DeviceDecider::exchange(const EventOutcome& host) {
  SLUICE_CHECK(open_);
  DeviceCounts& counts = now();
  for (const Admission& hit : host.hits) {
    if (clock_.returning(hit.id) == 0) continue;
    clock_.receive(hit.id);
    counts.late_returns += 1;
  }
  for (const Eviction& gone : host.evicted) clock_.withdraw_return(gone.id);
  // Meanwhile the link went on.
  for (LinkLoad& load : loads_) {
    const DeviceUse& use = *std::ranges::find(plan_.uses, load.id, &DeviceUse::id);
    if (use.from != DeviceBytes::kLink) load.transfer = remaining(load.id);
  }
  for (const Placed& one : host.adopted)
    if (costs_.device.transfer > 0) returns_.push_back({one.id, costs_.device.transfer});
  counts.dropped += plan_.evicted.size();
  counts.returns += host.adopted.size();
}

void DeviceDecider::prefetch(std::span<const PartRequest> experts) {
  SLUICE_CHECK(open_ && may_prefetch_ && next_prefetched_.empty(), "a prefetch of no layer, or its second");
  for (const PartRequest& one : experts) {
    if (policies_.residency(one.id.layer).computable(one.id)) continue;
    clock_.withdraw(one.id);  // a copy that an earlier layer asked for and nobody needed
    next_prefetched_.push_back(one.id);
    next_parts_ = one.parts;
    if (const double time = prefetch_time(one.parts); time > 0) prefetches_.push_back({one.id, time});
    now().prefetch.sent += 1;
  }
}

void DeviceDecider::end_layer() {
  if (!open_) return;
  open_ = false;
  const HybridTimes& times = clock_.run({.shared = shared_,
                                         .host = host_times_,
                                         .rows = rows_,
                                         .resident = resident_times_,
                                         .loads = loads_,
                                         .buffers = policies_.buffers,
                                         .prefetches = prefetches_,
                                         .updates = updates_,
                                         .returns = returns_});
  DeviceCounts& counts = now();
  double busy = times.predicted - times.decided;
  for (const LinkLoad& load : loads_) busy += costs_.device.launch + load.compute;
  counts.host += std::accumulate(host_times_.begin(), host_times_.end(), 0.0);
  counts.device += busy;
  counts.imbalance += std::abs(times.host - times.device);
  counts.wait += times.combined - times.decided - busy;
  counts.moe += times.combined - times.gate;
  counts.layers += times.end - times.gate;
}

}  // namespace sluice::experts
