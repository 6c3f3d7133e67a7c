// The pools of a layer's cache, one for each state in which an expert may stay. ZipMoE (arXiv 2601.21198) §5;
// SPEC §1.7, §1.9.
#pragma once

#include <array>
#include <cstdint>

#include "experts/core/ids.h"

namespace sluice::experts {

// From the hottest pool to the coldest: F ≺ C ≺ S ≺ E.
constexpr std::array<State, 4> kPools = {State::kF, State::kC, State::kS, State::kE};

// One value per pool.
template <class T>
struct PerPool {
  T f{}, c{}, s{}, e{};
  T& operator[](State pool) {
    return pool == State::kF ? f : pool == State::kC ? c : pool == State::kS ? s : e;
  }
  const T& operator[](State pool) const { return const_cast<PerPool&>(*this)[pool]; }
  bool operator==(const PerPool&) const = default;
};

using PoolSlots = PerPool<std::uint32_t>;  // capacities, in experts

// The parts that a pool keeps of an expert in this state.
constexpr Parts parts_of(State state) {
  switch (state) {
    case State::kF:
      return Part::kFull;
    case State::kC:
      return Part::kSm | Part::kExp;
    case State::kS:
      return Part::kSm;
    case State::kE:
      return Part::kExp;
    case State::kM:
      break;
  }
  return {};
}

// The pool for an expert of this rank (0: the hottest); M: no pool, the expert is dropped after use. delta:
// the tolerance margin, in experts. Pools without slots are skipped.
State dispatch(const PoolSlots& slots, std::uint32_t delta, std::uint64_t rank);

}  // namespace sluice::experts
