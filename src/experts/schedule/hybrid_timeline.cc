#include "experts/schedule/hybrid_timeline.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::experts {

double HybridTimeline::decide(const HybridCosts& costs) {
  SLUICE_CHECK(!decided_);
  decided_ = true;
  costs_ = costs;
  down().clear_arrivals();
  times_.gate = times_.end;
  times_.decided = times_.gate + costs.sync + costs.policy;
  carry(times_.decided);
  return times_.decided;
}

void HybridTimeline::carry(double until) {
  down().carry(until);
  up().carry(until);
}

double HybridTimeline::remaining(ExpertId id) const { return lanes_[0].left(id, LinkWay::kDown).value_or(0); }

void HybridTimeline::withdraw(ExpertId id) { down().take(id, LinkWay::kDown); }

double HybridTimeline::returning(ExpertId id) const { return up().left(id, LinkWay::kUp).value_or(0); }

void HybridTimeline::withdraw_return(ExpertId id) { up().take(id, LinkWay::kUp); }

double HybridTimeline::receive(ExpertId id) {
  SLUICE_CHECK(decided_);
  const std::optional<double> left = up().take(id, LinkWay::kUp);
  if (!left) return times_.decided;
  times_.decided = std::max(times_.decided, up().carry_at_once(*left, &LinkUse::returns));
  carry(times_.decided);
  return times_.decided;
}

const HybridTimes& HybridTimeline::run(const HybridWork& work) {
  SLUICE_CHECK(decided_ && work.buffers > 0);
  decided_ = false;
  const auto sum = [](std::span<const double> all) { return std::accumulate(all.begin(), all.end(), 0.0); };
  const bool launches = work.shared > 0 || !work.resident.empty();
  times_.resident = times_.decided + (launches ? costs_.launch + work.shared + sum(work.resident) : 0);
  times_.predicted = times_.resident + costs_.predict;
  const bool on_host = !work.host.empty();
  times_.host = times_.decided + (on_host ? costs_.sync + sum(work.host) : 0);

  for (const LinkTransfer& one : work.returns) {
    SLUICE_CHECK(one.time > 0 && returning(one.id) == 0);
    up().send({.id = one.id, .kind = LinkLane::Class::kReturn, .released = times_.decided, .time = one.time});
  }
  take_loads(work.loads);
  withdrawn_ += down().take_unstarted_prefetches();
  for (const LinkTransfer& transfer : work.prefetches)
    send(transfer, times_.predicted + costs_.sync, LinkLane::Class::kPrefetch);
  if (on_host)
    down().send({.id = {}, .kind = LinkLane::Class::kRows, .released = times_.host, .time = work.rows});
  load_experts(work);
  times_.rows = on_host ? down().carry_rows() : times_.decided;
  times_.combined = std::max(times_.device, times_.rows);
  times_.end = times_.combined + costs_.next_gate;
  for (const LinkTransfer& transfer : work.updates) send(transfer, times_.combined, LinkLane::Class::kUpdate);
  carry(times_.end);
  return times_;
}

void HybridTimeline::take_loads(std::span<const LinkLoad> loads) {
  transfers_.clear();
  for (const LinkLoad& load : loads)
    transfers_.push_back(down().take(load.id, LinkWay::kDown).value_or(load.transfer));
}

// A load waits for a buffer, which the load so many places before it leaves once it is computed. Meanwhile
// the link is free for others.
void HybridTimeline::load_experts(const HybridWork& work) {
  load_arrivals_.clear();
  load_ends_.clear();
  times_.device = times_.predicted;
  for (std::size_t i = 0; i < work.loads.size(); ++i) {
    if (i >= work.buffers) down().carry(load_ends_[i - work.buffers]);
    load_arrivals_.push_back(down().carry_at_once(transfers_[i], &LinkUse::loads));
    times_.device = std::max(times_.device, load_arrivals_.back()) + costs_.launch + work.loads[i].compute;
    load_ends_.push_back(times_.device);
  }
}

void HybridTimeline::send(const LinkTransfer& transfer, double released, LinkLane::Class kind) {
  SLUICE_CHECK(transfer.time > 0 && !down().left(transfer.id, LinkWay::kDown));
  down().send({.id = transfer.id, .kind = kind, .released = released, .time = transfer.time});
}

LinkUse HybridTimeline::link() const {
  LinkUse use = lanes_[0].use();
  if (full_duplex_) use.returns = lanes_[1].use().returns;
  return use;
}

}  // namespace sluice::experts
