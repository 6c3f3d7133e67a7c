#include "experts/zip_pools.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace sluice::experts {

State dispatch(const PoolSlots& slots, std::uint32_t delta, std::uint64_t rank) {
  std::uint64_t covered = 0;
  for (State pool : kPools) {
    if (slots[pool] == 0) continue;
    covered += slots[pool];
    if (rank < covered + delta) return pool;
  }
  return State::kM;
}

ZipPools::ZipPools(const PoolSlots& slots, const PoolRules& rules) : slots_(slots), rules_(rules) {
  if (rules.half_life > 0) decay_ = std::exp2(-1 / rules.half_life);
}

void ZipPools::seed(std::span<const double> counts) {
  SLUICE_CHECK(now_ == -1);
  entries_.resize(std::max(entries_.size(), counts.size()));
  for (std::size_t i = 0; i < counts.size(); ++i) entries_[i].count = counts[i];
}

void ZipPools::on_step(std::span<const std::uint16_t> active) {
  ++now_;
  moves_.clear();
  if (!active.empty() && active.back() >= entries_.size()) entries_.resize(active.back() + std::size_t{1});
  for (Entry& entry : entries_) {
    entry.found = entry.state;
    if (rules_.half_life > 0) entry.count *= decay_;
  }
  for (std::uint16_t expert : active) {
    entries_[expert].count += 1;
    entries_[expert].used = now_;
  }
  for (std::uint16_t expert : active) {
    const Entry& entry = entries_[expert];
    const State target = dispatch(slots_, rules_.delta, rank(expert));
    if (target == State::kM) {
      if (entry.state != State::kM) move(expert, State::kM);
      continue;
    }
    // Nothing compresses exponents here: what was found full gives no E chunks.
    if (entry.found == State::kF && (target == State::kC || target == State::kE)) continue;
    place(expert, target);
  }
}

void ZipPools::place(std::uint16_t expert, State target) {
  if (entries_[expert].state == target) return;
  if (entries_[expert].state != State::kM) --held_[entries_[expert].state];
  entries_[expert].state = target;
  if (++held_[target] <= slots_[target]) {
    moves_.push_back({expert, target});
    return;
  }
  const std::uint16_t victim = coldest_of(target);
  if (victim != expert) moves_.push_back({expert, target});
  State to = State::kM;
  if (rules_.demote && target == State::kC) {
    for (State pool : {State::kS, State::kE}) {
      if (to == State::kM && held_[pool] < slots_[pool]) to = pool;
    }
  }
  move(victim, to);
}

void ZipPools::move(std::uint16_t expert, State to) {
  --held_[entries_[expert].state];
  entries_[expert].state = to;
  if (to != State::kM) ++held_[to];
  moves_.push_back({expert, to});
}

bool ZipPools::hotter(std::uint16_t a, std::uint16_t b) const {
  const Entry &x = entries_[a], &y = entries_[b];
  return std::tuple(-x.count, -x.used, a) < std::tuple(-y.count, -y.used, b);
}

std::uint64_t ZipPools::rank(std::uint16_t expert) const {
  std::uint64_t before = 0;
  for (std::size_t other = 0; other < entries_.size(); ++other)
    before += hotter(static_cast<std::uint16_t>(other), expert);
  return before;
}

std::uint16_t ZipPools::coldest_of(State pool) const {
  std::size_t coldest = entries_.size();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].state != pool) continue;
    const Entry& entry = entries_[i];
    if (coldest == entries_.size() ||
        std::tuple(entry.count, entry.used) < std::tuple(entries_[coldest].count, entries_[coldest].used)) {
      coldest = i;
    }
  }
  return static_cast<std::uint16_t>(coldest);
}

}  // namespace sluice::experts
