// The slices in which the pieces of a pack's units are read and coded: one exponent chunk each, or a few MiB
// of a raw piece.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "store/checkpoint.h"
#include "store/format.h"
#include "store/pack_units.h"
#include "store/weight_files.h"

namespace sluice::store {

enum class Family { kRaw, kSplit, kTiled };
// What pieces become, whatever the codec's own settings.
struct Coding {
  Family family = Family::kRaw;
  unsigned chunks = 1;                      // K, of experts' pieces
  Bytes least_dense = kMinSplitDenseBytes;  // a dense piece that is not raw
  bool keep_columns =
      false;  // of family kTiled: tiles have the columns of their matrix, whatever the padding
};

// How a piece is stored (docs/store-format.md, section 4).
struct PieceCoding {
  Encoding encoding = Encoding::kRaw;
  codec::TileShape tiles;  // of family kTiled
};
PieceCoding coding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece,
                      const Coding& coding);

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
  PackSlices(const Weights& weights, const std::vector<PackUnit>& units, const Coding& coding,
             std::size_t first_unit);
  bool next(SliceRange& slice);  // false: no more

 private:
  void list(std::size_t unit);

  const Weights& weights_;
  const std::vector<PackUnit>& units_;
  const Coding coding_;
  std::size_t next_unit_;
  std::deque<SliceRange> queue_;  // of one unit, so that the last of it is known
};

}  // namespace sluice::store
