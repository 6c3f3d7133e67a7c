// The slices in which a pack reads and codes the pieces of its units: one exponent chunk each, or a few
// MiB of a raw piece.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "store/checkpoint.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/pack/pack_units.h"
#include "store/source/weight_files.h"

namespace sluice::store {

// What the codec makes from BF16 pieces: nothing, planes, or planes in tiles.
enum class Planes { kNone, kFlat, kTiled };
// How pieces are coded, apart from the codec's own settings.
struct Coding {
  Planes planes = Planes::kNone;
  unsigned chunks = 1;                      // K, for experts' pieces
  Bytes least_dense = kMinSplitDenseBytes;  // the smallest dense piece that is not stored raw
  // For Planes::kTiled: tiles have the columns of their matrix, whatever the padding.
  bool keep_columns = false;
  std::optional<codec::SliceBits> slices{};  // for experts
  DenseRounding dense = DenseRounding::kExact;
  std::vector<std::uint32_t> exact{};  // tensors that are never rounded, ascending
};

// How a piece will be stored (docs/store-format.md, section 4): its entry without places, checksums and runs.
// Error(kUnsupported) naming a tensor that must be sliced and is not a matrix, or has another element type or
// a format.
PieceEntry coding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece,
                     const Coding& coding);

struct SliceRange {
  std::size_t unit = 0;
  std::size_t piece = 0;  // index in the unit
  // Elements of the piece (places, in tiles); 0 if the unit has no elements
  std::uint64_t first = 0, count = 0;
  Encoding encoding = Encoding::kRaw;
  std::size_t plane = 0;      // for a piece in a format; `first` and `count` are then elements of its tensor
  codec::TileShape tiles{};   // the shape of these rows
  codec::CellShape matrix{};  // the shape of these rows; `first` and `count` are then strips of the piece
  bool last = false;          // the last slice of the unit
  std::uint32_t file = 0;     // the file it is read from
  Bytes offset = 0, length = 0;
};

// Thread-compatible. The constructor's arguments must outlive it.
class PackSlices {
 public:
  PackSlices(const Weights& weights, const std::vector<PackUnit>& units, const Coding& coding,
             std::size_t first_unit);
  bool next(SliceRange& slice);  // false: no more

 private:
  void list(std::size_t unit);
  void list_planes(std::size_t unit, std::size_t piece);

  const Weights& weights_;
  const std::vector<PackUnit>& units_;
  const Coding coding_;
  std::size_t next_unit_;
  // The slices of one unit; kept together so that the last one is known.
  std::deque<SliceRange> queue_;
};

}  // namespace sluice::store
