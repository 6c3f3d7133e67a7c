#include "experts/schedule/hybrid_timeline.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::experts {

double HybridTimeline::decide(const HybridCosts& costs) {
  SLUICE_CHECK(!decided_);
  decided_ = true;
  costs_ = costs;
  arrivals_.clear();
  times_.gate = times_.end;
  times_.decided = times_.gate + costs.sync + costs.policy;
  carry(times_.decided);
  carry_up(times_.decided);
  return times_.decided;
}

double HybridTimeline::remaining(ExpertId id) const {
  const auto sent = find(id);
  return sent == background_.end() ? 0 : sent->left;
}

void HybridTimeline::withdraw(ExpertId id) {
  if (const auto sent = find(id); sent != background_.end()) background_.erase(sent);
}

double HybridTimeline::returning(ExpertId id) const {
  const auto sent = std::ranges::find(returns_, id, &Return::id);
  return sent == returns_.end() ? 0 : sent->left;
}

void HybridTimeline::withdraw_return(ExpertId id) {
  std::erase_if(returns_, [&](const Return& one) { return one.id == id; });
}

double HybridTimeline::receive(ExpertId id) {
  SLUICE_CHECK(decided_);
  const auto sent = std::ranges::find(returns_, id, &Return::id);
  if (sent == returns_.end()) return times_.decided;
  up_time_ += sent->left;  // what is on the link keeps it busy until now
  link_.returns += sent->left;
  returns_.erase(sent);
  times_.decided = std::max(times_.decided, up_time_);
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
  times_.rows = times_.decided;

  for (const LinkTransfer& one : work.returns) {
    SLUICE_CHECK(one.time > 0 && returning(one.id) == 0);
    returns_.push_back({one.id, times_.decided, one.time});
  }
  take_loads(work.loads);
  withdraw_unstarted();
  for (const LinkTransfer& transfer : work.prefetches)
    send(transfer, times_.predicted + costs_.sync, Class::kPrefetch);
  if (on_host)
    background_.push_back(
        {.id = {}, .kind = Class::kRows, .released = times_.host, .time = work.rows, .left = work.rows});
  load_experts(work);
  if (on_host) carry(std::numeric_limits<double>::infinity(), true);
  times_.combined = std::max(times_.device, times_.rows);
  times_.end = times_.combined + costs_.next_gate;
  for (const LinkTransfer& transfer : work.updates) send(transfer, times_.combined, Class::kUpdate);
  carry(times_.end);
  carry_up(times_.end);
  return times_;
}

void HybridTimeline::take_loads(std::span<const LinkLoad> loads) {
  transfers_.clear();
  for (const LinkLoad& load : loads) {
    const auto sent = find(load.id);
    transfers_.push_back(sent == background_.end() ? load.transfer : sent->left);
    if (sent != background_.end()) background_.erase(sent);
  }
}

void HybridTimeline::withdraw_unstarted() {
  withdrawn_ += std::erase_if(background_, [](const Background& one) {
    return one.kind == Class::kPrefetch && one.left == one.time;
  });
}

// A load waits for a buffer, which the load so many places before it leaves once it is computed. Meanwhile
// the link is free for others.
void HybridTimeline::load_experts(const HybridWork& work) {
  load_arrivals_.clear();
  load_ends_.clear();
  times_.device = times_.predicted;
  for (std::size_t i = 0; i < work.loads.size(); ++i) {
    if (i >= work.buffers) carry(load_ends_[i - work.buffers]);
    link_time_ += transfers_[i];
    link_.loads += transfers_[i];
    load_arrivals_.push_back(link_time_);
    times_.device = std::max(times_.device, link_time_) + costs_.launch + work.loads[i].compute;
    load_ends_.push_back(times_.device);
  }
}

void HybridTimeline::send(const LinkTransfer& transfer, double released, Class kind) {
  SLUICE_CHECK(transfer.time > 0 && find(transfer.id) == background_.end());
  background_.push_back(
      {.id = transfer.id, .kind = kind, .released = released, .time = transfer.time, .left = transfer.time});
}

std::vector<HybridTimeline::Background>::const_iterator HybridTimeline::find(ExpertId id) const {
  return std::ranges::find_if(
      background_, [&](const Background& one) { return one.kind != Class::kRows && one.id == id; });
}

std::size_t HybridTimeline::carried_at(double time, double& until) const {
  std::size_t best = kNothing;
  for (std::size_t i = 0; i < background_.size(); ++i) {
    const bool released = background_[i].released <= time;
    if (released && (best == kNothing || background_[i].kind < background_[best].kind)) best = i;
  }
  for (const Background& one : background_) {
    if (one.released > time && (best == kNothing || one.kind < background_[best].kind))
      until = std::min(until, one.released);
  }
  return best;
}

void HybridTimeline::carry(double until, bool rows_only) {
  const auto has_rows = [&] {
    return std::ranges::any_of(background_, [](const Background& one) { return one.kind == Class::kRows; });
  };
  while (link_time_ < until && (!rows_only || has_rows())) {
    double stop = until;
    const std::size_t carried = carried_at(link_time_, stop);
    if (carried == kNothing) {
      link_time_ = stop;
      continue;
    }
    Background& one = background_[carried];
    double& use = one.kind == Class::kRows       ? link_.rows
                  : one.kind == Class::kPrefetch ? link_.prefetches
                                                 : link_.updates;
    if (link_time_ + one.left > stop) {
      one.left -= stop - link_time_;
      use += stop - link_time_;
      link_time_ = stop;
      continue;
    }
    link_time_ += one.left;
    use += one.left;
    if (one.kind == Class::kRows) {
      times_.rows = link_time_;
    } else {
      arrivals_.push_back({one.id, link_time_, one.kind == Class::kUpdate});
    }
    background_.erase(background_.begin() + static_cast<std::ptrdiff_t>(carried));
  }
}

void HybridTimeline::carry_up(double until) {
  while (!returns_.empty() && up_time_ < until) {
    Return& one = returns_.front();
    up_time_ = std::max(up_time_, one.released);
    if (up_time_ >= until) return;
    if (up_time_ + one.left > until) {
      one.left -= until - up_time_;
      link_.returns += until - up_time_;
      up_time_ = until;
      return;
    }
    link_.returns += one.left;
    up_time_ += one.left;
    returns_.erase(returns_.begin());
  }
}

}  // namespace sluice::experts
