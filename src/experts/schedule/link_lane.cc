#include "experts/schedule/link_lane.h"

#include <algorithm>
#include <limits>

namespace sluice::experts {
namespace {

// Lower goes first.
int rank_of(LinkLane::Class kind) {
  return static_cast<int>(kind == LinkLane::Class::kReturn ? LinkLane::Class::kUpdate : kind);
}

double LinkUse::*use_of(LinkLane::Class kind) {
  using enum LinkLane::Class;
  switch (kind) {
    case kRows:
      return &LinkUse::rows;
    case kPrefetch:
      return &LinkUse::prefetches;
    case kUpdate:
      return &LinkUse::updates;
    case kReturn:
      break;
  }
  return &LinkUse::returns;
}

}  // namespace

std::vector<LinkLane::Copy>::const_iterator LinkLane::find(ExpertId id, LinkWay way) const {
  return std::ranges::find_if(copies_, [&](const Copy& one) {
    return one.kind != Class::kRows && one.id == id && (one.kind == Class::kReturn) == (way == LinkWay::kUp);
  });
}

std::optional<double> LinkLane::left(ExpertId id, LinkWay way) const {
  const auto sent = find(id, way);
  return sent == copies_.end() ? std::nullopt : std::optional(sent->left);
}

std::optional<double> LinkLane::take(ExpertId id, LinkWay way) {
  const auto sent = find(id, way);
  if (sent == copies_.end()) return std::nullopt;
  const double left = sent->left;
  copies_.erase(sent);
  return left;
}

std::uint64_t LinkLane::take_unstarted_prefetches() {
  return std::erase_if(copies_,
                       [](const Copy& one) { return one.kind == Class::kPrefetch && one.left == one.time; });
}

double LinkLane::carry_at_once(double time, double LinkUse::*what) {
  time_ += time;
  use_.*what += time;
  return time_;
}

void LinkLane::carry(double until) {
  while (time_ < until) carry_one(until);
}

double LinkLane::carry_rows() {
  while (has_rows()) carry_one(std::numeric_limits<double>::infinity());
  return rows_end_;
}

bool LinkLane::has_rows() const {
  return std::ranges::any_of(copies_, [](const Copy& one) { return one.kind == Class::kRows; });
}

void LinkLane::carry_one(double until) {
  double stop = until;
  const std::size_t carried = carried_at(time_, stop);
  if (carried == kNothing) {
    time_ = stop;
    return;
  }
  Copy& one = copies_[carried];
  double& use = use_.*use_of(one.kind);
  if (time_ + one.left > stop) {
    one.left -= stop - time_;
    use += stop - time_;
    time_ = stop;
    return;
  }
  time_ += one.left;
  use += one.left;
  if (one.kind == Class::kRows) rows_end_ = time_;
  if (one.kind == Class::kPrefetch || one.kind == Class::kUpdate)
    arrivals_.push_back({one.id, time_, one.kind == Class::kUpdate});
  copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(carried));
}

std::size_t LinkLane::carried_at(double time, double& until) const {
  std::size_t best = kNothing;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const bool released = copies_[i].released <= time;
    if (released && (best == kNothing || rank_of(copies_[i].kind) < rank_of(copies_[best].kind))) best = i;
  }
  for (const Copy& one : copies_) {
    if (one.released > time && (best == kNothing || rank_of(one.kind) < rank_of(copies_[best].kind)))
      until = std::min(until, one.released);
  }
  return best;
}

}  // namespace sluice::experts
