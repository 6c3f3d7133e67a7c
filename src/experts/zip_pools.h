// Zip-pools: the residents of one layer in pools of full and compressed experts, each dispatched by the rank
// of its activation count. ZipMoE (arXiv 2601.21198) §5.4, with the resolutions (i) to (vi) of SPEC §1.7.
// cache_zip_pools.cc makes a Cache of one per layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/pools.h"

namespace sluice::experts {

struct PoolRules {
  std::uint32_t delta = 2;  // tolerance margin, in experts
  bool demote = false;      // victims of C stay as S or E where there is room
  double half_life = 0;     // steps in which counts halve; 0: they never do
};

// Thread-compatible.
class ZipPools {
 public:
  ZipPools(const PoolSlots& slots, const PoolRules& rules);
  // Starts with these counts (by expert) instead of none. REQUIRES: no step yet.
  void seed(std::span<const double> counts);

  // A step has used these experts, ascending and distinct; all their data is at hand. Decides what stays.
  void on_step(std::span<const std::uint16_t> active);

  State state(std::uint16_t expert) const {
    return expert < entries_.size() ? entries_[expert].state : State::kM;
  }
  // Of the last step: the state in which it found an expert, and what it did, in order. An expert may move
  // twice; one that was placed and at once discarded moves to M without having been there.
  State found(std::uint16_t expert) const {
    return expert < entries_.size() ? entries_[expert].found : State::kM;
  }
  struct Move {
    std::uint16_t expert;
    State to;
  };
  std::span<const Move> moves() const { return moves_; }
  std::size_t experts() const { return entries_.size(); }  // 1 + the highest that was ever used or seeded

 private:
  struct Entry {
    double count = 0;        // of steps that used it
    std::int64_t used = -1;  // the last of them
    State state = State::kM, found = State::kM;
  };

  std::uint64_t rank(std::uint16_t expert) const;
  void place(std::uint16_t expert, State target);
  void move(std::uint16_t expert, State to);
  bool hotter(std::uint16_t a, std::uint16_t b) const;  // by (count desc, last use desc, id asc)
  std::uint16_t coldest_of(State pool) const;           // by (count, last use, id), all ascending

  PoolSlots slots_, held_;
  PoolRules rules_;
  double decay_ = 1;
  std::int64_t now_ = -1;
  std::vector<Entry> entries_;  // by expert
  std::vector<Move> moves_;
};

}  // namespace sluice::experts
