// Zip-pools: the residents of one layer in pools of full and compressed experts, each dispatched by the
// rank of its activation count. ZipMoE (arXiv 2601.21198) §5.4, with the resolutions (i) to (vi) of SPEC
// §1.7. cache_zip_pools.cc makes a Cache of one ZipPools per layer.
//
// An expert for which its pool has no room need not leave memory (Demotion). In the paper's printed rule it
// leaves, and then pools stay empty that a plan counts on: the margin delta sends ranks just beyond a pool
// into it, where they are the coldest and leave at once, and an expert that climbs out of S throws one out of
// C that S never gets back. docs/zipmoe.md, "What we do differently", has the numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/cache/pool_rules.h"
#include "experts/core/pools.h"

namespace sluice::experts {

// Thread-compatible.
class ZipPools {
 public:
  ZipPools(const PoolSlots& slots, const PoolRules& rules);
  // Starts with these counts (by expert) instead of zeros. REQUIRES: no step yet.
  void seed(std::span<const double> counts);

  // A step has used these experts, ascending and distinct; all their data is in memory. Decides which parts
  // stay. `odds`: log odds, by expert, by which experts are ranked now (the lower id is the hotter of
  // equals); empty: by counts. REQUIRES: odds of all experts that were ever used, or none.
  void on_step(std::span<const std::uint16_t> active, std::span<const float> odds = {});

  State state(std::uint16_t expert) const {
    return expert < entries_.size() ? entries_[expert].state : State::kM;
  }
  // For the last step: the state in which it found an expert, and its moves, in order. An expert may move
  // twice; an expert that was placed and at once discarded moves to M without having been resident.
  State found(std::uint16_t expert) const {
    return expert < entries_.size() ? entries_[expert].found : State::kM;
  }
  struct Move {
    std::uint16_t expert;
    State to;
  };
  std::span<const Move> moves() const { return moves_; }
  std::size_t experts() const { return entries_.size(); }  // 1 + the highest id ever used or seeded

 private:
  struct Entry {
    double count = 0;        // steps that used the expert
    std::int64_t used = -1;  // the last such step
    State state = State::kM, found = State::kM;
  };

  std::uint64_t rank(std::uint16_t expert) const;
  void place(std::uint16_t expert, State target);
  // Demotion::kRank: puts the expert into the first of kPools from `pool` on that takes it, or out of memory.
  void place_from(std::uint16_t expert, std::size_t pool);
  // Whether the coldest expert of F keeps its slot although `expert` is hotter, because C takes `expert`.
  bool is_kept_full(std::uint16_t victim, std::uint16_t expert) const;
  // Whether the change needs neither a read nor compression: an expert of this step has all its data in
  // memory.
  bool can_become(const Entry& entry, State pool) const;
  void move(std::uint16_t expert, State to);
  bool hotter(std::uint16_t a, std::uint16_t b) const;  // by (count desc, last use desc, id asc)
  // By (count, last use), ascending; among equals the lower id is colder, as SPEC §1.7 has it for victims;
  // with kRank, the expert of the higher rank.
  bool colder(std::uint16_t a, std::uint16_t b) const;
  std::uint16_t coldest_of(State pool) const;

  PoolSlots slots_, held_;
  PoolRules rules_;
  double decay_ = 1;
  std::span<const float> odds_;  // the running step's
  std::int64_t now_ = -1;
  std::vector<Entry> entries_;  // by expert
  std::vector<Move> moves_;
};

}  // namespace sluice::experts
