// The slices in which the pieces of a pack's units are read and coded: one exponent chunk each, or a few MiB
// of a raw piece.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "store/checkpoint.h"
#include "store/pack_units.h"
#include "store/weight_files.h"

namespace sluice::store {

enum class Family { kRaw, kSplit, kTiled };

// How a piece is stored (docs/store-format.md, section 4).
struct PieceCoding {
  Encoding encoding = Encoding::kRaw;
  codec::TileShape tiles;  // of family kTiled
};
PieceCoding coding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece, Family family);

struct SliceRange {
  std::size_t unit = 0;
  std::size_t piece = 0;               // of the unit
  std::uint64_t first = 0, count = 0;  // elements of the piece (places, in tiles); 0 if the unit has none
  Encoding encoding = Encoding::kRaw;
  codec::TileShape tiles{};  // of these rows
  bool last = false;         // of the unit
  std::uint32_t file = 0;    // where it is read
  Bytes offset = 0, length = 0;
};

// Thread-compatible. What it is made of must outlive it.
class PackSlices {
 public:
  // From `first_unit` on. `chunks` is K, of experts' pieces.
  PackSlices(const Weights& weights, const std::vector<PackUnit>& units, Family family, unsigned chunks,
             std::size_t first_unit);
  bool next(SliceRange& slice);  // false: no more

 private:
  void list(std::size_t unit);

  const Weights& weights_;
  const std::vector<PackUnit>& units_;
  const Family family_;
  const unsigned chunks_;
  std::size_t next_unit_;
  std::deque<SliceRange> queue_;  // of one unit, so that the last of it is known
};

}  // namespace sluice::store
