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
  return times_.decided;
}

double HybridTimeline::remaining(ExpertId id) const {
  const auto found = std::ranges::find(background_, id, &Background::id);
  return found == background_.end() ? 0 : found->left;
}

const LayerTimes& HybridTimeline::run(const HybridWork& work) {
  SLUICE_CHECK(decided_);
  decided_ = false;
  withdraw_unstarted(work.loads);
  const auto sum = [](std::span<const double> all) { return std::accumulate(all.begin(), all.end(), 0.0); };
  const bool launches = work.shared > 0 || !work.resident.empty();
  times_.resident = times_.decided + (launches ? costs_.launch + work.shared + sum(work.resident) : 0);
  times_.predicted = times_.resident + costs_.predict;
  const double loaded = load_experts(work.loads);

  double rows_begin = loaded;
  if (work.host.empty()) {
    times_.host = times_.rows = times_.decided;
  } else {
    times_.host = times_.decided + costs_.sync + sum(work.host);
    rows_begin = std::max(times_.host, loaded);
    times_.rows = rows_begin + costs_.rows;
    link_.rows += costs_.rows;
  }
  times_.combined = std::max(times_.device, times_.rows);
  times_.end = times_.combined + costs_.next_gate;

  for (const Transfer& transfer : work.prefetches) send(transfer, times_.predicted + costs_.sync, false);
  for (const Transfer& transfer : work.updates) send(transfer, times_.combined, true);
  link_time_ = loaded;
  carry(rows_begin);
  link_time_ = std::max(rows_begin, times_.rows);
  carry(times_.end);
  return times_;
}

void HybridTimeline::withdraw_unstarted(std::span<const Load> loads) {
  const std::size_t before = background_.size();
  std::erase_if(background_, [&](const Background& one) {
    return !one.is_update && one.left == one.time &&
           std::ranges::find(loads, one.id, &Load::id) == loads.end();
  });
  withdrawn_ += before - background_.size();
}

double HybridTimeline::load_experts(std::span<const Load> loads) {
  load_arrivals_.clear();
  load_ends_.clear();
  double link = times_.decided;
  times_.device = times_.predicted;
  for (const Load& load : loads) {
    double transfer = load.transfer;
    const auto sent = std::ranges::find(background_, load.id, &Background::id);
    if (sent != background_.end()) {
      transfer = sent->left;
      background_.erase(sent);
    }
    link += transfer;
    link_.loads += transfer;
    load_arrivals_.push_back(link);
    times_.device = std::max(times_.device, link) + costs_.launch + load.compute;
    load_ends_.push_back(times_.device);
  }
  return link;
}

void HybridTimeline::send(const Transfer& transfer, double released, bool is_update) {
  SLUICE_CHECK(transfer.time > 0);
  SLUICE_CHECK(std::ranges::find(background_, transfer.id, &Background::id) == background_.end());
  background_.push_back({.id = transfer.id,
                         .released = released,
                         .time = transfer.time,
                         .left = transfer.time,
                         .is_update = is_update});
}

std::size_t HybridTimeline::carried_at(double time, double& known_until) const {
  std::size_t best = background_.size();
  for (std::size_t i = 0; i < background_.size(); ++i) {
    const Background& one = background_[i];
    if (one.released > time) continue;
    if (best == background_.size() || (background_[best].is_update && !one.is_update)) best = i;
  }
  for (const Background& one : background_) {
    const bool gives_way = best == background_.size() || (background_[best].is_update && !one.is_update);
    if (one.released > time && gives_way) known_until = std::min(known_until, one.released);
  }
  return best;
}

void HybridTimeline::carry(double until) {
  while (link_time_ < until) {
    double stop = until;
    const std::size_t carried = carried_at(link_time_, stop);
    if (carried == background_.size()) {
      link_time_ = stop;
      continue;
    }
    Background& one = background_[carried];
    double& use = one.is_update ? link_.updates : link_.prefetches;
    if (link_time_ + one.left > stop) {
      one.left -= stop - link_time_;
      use += stop - link_time_;
      link_time_ = stop;
      continue;
    }
    link_time_ += one.left;
    use += one.left;
    arrivals_.push_back({one.id, link_time_, one.is_update});
    background_.erase(background_.begin() + static_cast<std::ptrdiff_t>(carried));
  }
}

}  // namespace sluice::experts
