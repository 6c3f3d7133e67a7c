// The slices in which the pieces of a pack's units are read and coded: one exponent chunk each, or a few MiB
// of a raw piece.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "store/checkpoint.h"
#include "store/format.h"
#include "store/pack_units.h"
#include "store/weight_files.h"

namespace sluice::store {

// What the codec makes of BF16 pieces: nothing, planes, or planes in tiles.
enum class Planes { kNone, kFlat, kTiled };
// What pieces become, whatever the codec's own settings.
struct Coding {
  Planes planes = Planes::kNone;
  unsigned chunks = 1;                      // K, of experts' pieces
  Bytes least_dense = kMinSplitDenseBytes;  // a dense piece that is not raw
  bool keep_columns =
      false;  // of Planes::kTiled: tiles have the columns of their matrix, whatever the padding
  std::optional<codec::SliceBits> slices{};  // of experts
  DenseWeights dense = DenseWeights::kExact;
  std::vector<std::uint32_t> exact{};  // tensors that are never rounded, ascending
};

// How a piece is stored (docs/store-format.md, section 4).
struct PieceCoding {
  Encoding encoding = Encoding::kRaw;
  codec::TileShape tiles{};   // of Planes::kTiled
  codec::CellShape matrix{};  // of quantised pieces
};
// Error(kUnsupported) naming a tensor that is to be sliced and is no matrix, or of another type.
PieceCoding coding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece,
                      const Coding& coding);

struct SliceRange {
  std::size_t unit = 0;
  std::size_t piece = 0;               // of the unit
  std::uint64_t first = 0, count = 0;  // elements of the piece (places, in tiles); 0 if the unit has none
  Encoding encoding = Encoding::kRaw;
  codec::TileShape tiles{};   // of these rows
  codec::CellShape matrix{};  // of these rows; `first` and `count` are then strips of the piece
  bool last = false;          // of the unit
  std::uint32_t file = 0;     // where it is read
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
