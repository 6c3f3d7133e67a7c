#include "experts/cache/zip_pools.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace sluice::experts {
namespace {

// An expert in C can be computed without a read, too. Such an expert takes the place of an expert in F, which
// then keeps at most its planes, only once it has this many more uses, and other experts wait for its slot in
// C. Drawn routing, 12 and 64 experts, 200 and 800 steps (2026-11): with 0, up to 20 % more reads; with
// infinity (unless the expert in F is colder than all of C) equally few reads, but a fifth to a third of the
// hits of F move to C; with 8 as many reads as with 4, and fewer hits of F.
constexpr double kUsesWorthARead = 4;

// The same where experts are ranked by log odds, whether or not C would take the expert: one that leaves F
// has no exponents left, and mostly nothing. Replays of DeepSeek-V2-Lite's texts at 17, 35 and 52 % of the
// model (docs/cache-tournament.md): with 1 or less, up to a fifth more reads on short prompts of one pattern;
// with 3, up to a tenth more on long texts.
constexpr float kOddsWorthASlot = 2;

}  // namespace

State dispatch(const PoolSlots& slots, std::uint32_t delta, std::uint64_t rank) {
  std::uint64_t covered = 0;
  for (State pool : kPools) {
    if (slots[pool] == 0) continue;
    covered += slots[pool];
    if (rank < covered + delta) return pool;
  }
  return State::kM;
}

std::string_view demotion_name(Demotion demotion) {
  return demotion == Demotion::kNone ? "none" : demotion == Demotion::kRoom ? "room" : "rank";
}

std::optional<Demotion> find_demotion(std::string_view name) {
  for (const Demotion demotion : {Demotion::kNone, Demotion::kRoom, Demotion::kRank}) {
    if (name == demotion_name(demotion)) return demotion;
  }
  return std::nullopt;
}

ZipPools::ZipPools(const PoolSlots& slots, const PoolRules& rules) : slots_(slots), rules_(rules) {
  if (rules.half_life > 0) decay_ = std::exp2(-1 / rules.half_life);
}

void ZipPools::seed(std::span<const double> counts) {
  SLUICE_CHECK(now_ == -1);
  entries_.resize(std::max(entries_.size(), counts.size()));
  for (std::size_t i = 0; i < counts.size(); ++i) entries_[i].count = counts[i];
}

void ZipPools::on_step(std::span<const std::uint16_t> active, std::span<const float> odds) {
  ++now_;
  odds_ = odds;
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
  SLUICE_CHECK(odds.empty() || odds.size() >= entries_.size(), "experts without odds");
  for (std::uint16_t expert : active) {
    const Entry& entry = entries_[expert];
    const State target = dispatch(slots_, rules_.delta, rank(expert));
    if (target == State::kM) {
      if (entry.state != State::kM) move(expert, State::kM);
      continue;
    }
    // No exponents are compressed here: an expert that was found full has no E chunks.
    const bool impossible = entry.found == State::kF && (target == State::kC || target == State::kE);
    if (rules_.demotion != Demotion::kRank) {
      if (!impossible) place(expert, target);
    } else if (entry.state != target && !(impossible && entry.state == State::kF)) {
      place_from(expert, static_cast<std::size_t>(std::ranges::find(kPools, target) - kPools.begin()));
    }
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
  if (rules_.demotion == Demotion::kRoom && target == State::kC) {
    for (State pool : {State::kS, State::kE}) {
      if (to == State::kM && held_[pool] < slots_[pool]) to = pool;
    }
  }
  move(victim, to);
}

void ZipPools::place_from(std::uint16_t expert, std::size_t pool) {
  Entry& entry = entries_[expert];
  const State before = entry.state;
  if (before != State::kM) --held_[before];
  for (; pool < kPools.size(); ++pool) {
    const State to = kPools[pool];
    if (slots_[to] == 0 || !can_become(entry, to)) continue;
    const bool room = held_[to] < slots_[to];
    const std::uint16_t coldest = room ? expert : coldest_of(to);
    if (!room && (!colder(coldest, expert) || (to == State::kF && is_kept_full(coldest, expert)))) continue;
    entry.state = to;
    ++held_[to];
    if (to != before) moves_.push_back({expert, to});
    if (!room) place_from(coldest, pool + 1);
    return;
  }
  entry.state = State::kM;
  moves_.push_back({expert, State::kM});
}

bool ZipPools::is_kept_full(std::uint16_t victim, std::uint16_t expert) const {
  if (!odds_.empty()) return odds_[expert] < odds_[victim] + kOddsWorthASlot;
  if (slots_.c == 0 || !can_become(entries_[expert], State::kC)) return false;
  const bool c_takes_it = held_.c < slots_.c || colder(coldest_of(State::kC), victim);
  if (!c_takes_it) return false;
  if (entries_[expert].count < entries_[victim].count + kUsesWorthARead) return true;
  // If F and C hold every expert, nothing is read any more: the victim keeps its slot.
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const State state = entries_[i].state;
    if (i != expert && entries_[i].count > 0 && state != State::kF && state != State::kC) return false;
  }
  return true;
}

bool ZipPools::can_become(const Entry& entry, State pool) const {
  if (entry.used == now_) return entry.found != State::kF || pool == State::kF || pool == State::kS;
  return (entry.state == State::kC && pool != State::kF) || (entry.state == State::kF && pool == State::kS);
}

void ZipPools::move(std::uint16_t expert, State to) {
  --held_[entries_[expert].state];
  entries_[expert].state = to;
  if (to != State::kM) ++held_[to];
  moves_.push_back({expert, to});
}

bool ZipPools::hotter(std::uint16_t a, std::uint16_t b) const {
  if (!odds_.empty()) return std::tuple(-odds_[a], a) < std::tuple(-odds_[b], b);
  const Entry &x = entries_[a], &y = entries_[b];
  return std::tuple(-x.count, -x.used, a) < std::tuple(-y.count, -y.used, b);
}

bool ZipPools::colder(std::uint16_t a, std::uint16_t b) const {
  if (rules_.demotion == Demotion::kRank || !odds_.empty()) return hotter(b, a);
  const Entry &x = entries_[a], &y = entries_[b];
  return std::tuple(x.count, x.used, a) < std::tuple(y.count, y.used, b);
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
    const auto expert = static_cast<std::uint16_t>(i);
    if (coldest == entries_.size() || colder(expert, static_cast<std::uint16_t>(coldest))) coldest = i;
  }
  return static_cast<std::uint16_t>(coldest);
}

}  // namespace sluice::experts
