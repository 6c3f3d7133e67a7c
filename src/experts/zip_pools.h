// Zip-pools: the residents of one layer in pools of full and compressed experts, each dispatched by the rank
// of its activation count. ZipMoE (arXiv 2601.21198) §5.4, with the resolutions (i) to (vi) of SPEC §1.7.
// cache_zip_pools.cc makes a Cache of one per layer.
//
// What a pool has no room for need not leave memory (Demotion). As printed it does, and then pools stay empty
// that a plan counts on: the margin delta sends ranks just beyond a pool into it, where they are the coldest
// and leave at once, and an expert that climbs out of S throws one out of C that S never gets back.
// docs/zipmoe.md, "What we do differently", has the numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "experts/pools.h"

namespace sluice::experts {

// What becomes of experts for which their pool has no room. No way reads or compresses anything.
enum class Demotion : std::uint8_t {
  kNone,  // they leave; SPEC §1.7 as printed
  kRoom,  // victims of C stay as S or E where there is room (SPEC §1.7 (iv), demote = true)
  kRank,  // they go on to the next pool that they can be in and that has room or a colder one, which goes on;
          // one in F, which only S takes, keeps its slot while C takes the hotter one and that is not much
          // hotter
};
std::string_view demotion_name(Demotion demotion);  // "none" "room" "rank"
std::optional<Demotion> find_demotion(std::string_view name);

struct PoolRules {
  std::uint32_t delta = 2;  // tolerance margin, in experts
  Demotion demotion = Demotion::kRank;
  double half_life = 0;  // steps in which counts halve; 0: they never do
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
  // Demotion::kRank: into the first of kPools from `pool` on that takes it, or out of memory.
  void place_from(std::uint16_t expert, std::size_t pool);
  // Whether the coldest of F keeps its slot though `expert` is hotter, because C takes that.
  bool is_kept_full(std::uint16_t victim, std::uint16_t expert) const;
  // Without a read and without compressing: an expert of this step has all its data at hand.
  bool can_become(const Entry& entry, State pool) const;
  void move(std::uint16_t expert, State to);
  bool hotter(std::uint16_t a, std::uint16_t b) const;  // by (count desc, last use desc, id asc)
  // By (count, last use), ascending; of equals the lower id, as SPEC §1.7 has it for victims, or, with kRank,
  // the one of the higher rank.
  bool colder(std::uint16_t a, std::uint16_t b) const;
  std::uint16_t coldest_of(State pool) const;

  PoolSlots slots_, held_;
  PoolRules rules_;
  double decay_ = 1;
  std::int64_t now_ = -1;
  std::vector<Entry> entries_;  // by expert
  std::vector<Move> moves_;
};

}  // namespace sluice::experts
