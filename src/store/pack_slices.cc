#include "store/pack_slices.h"

#include <algorithm>

#include "codec/shards.h"
#include "store/format.h"

namespace sluice::store {
namespace {

constexpr Bytes kRawSliceBytes = 4 * kMiB;

}  // namespace

PieceCoding coding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece,
                      const Coding& coding) {
  const TensorInfo& tensor = weights.tensors[piece.tensor];
  const bool worth = unit.is_expert  ? piece.count > 0
                     : unit.is_range ? false
                                     : 2 * piece.count >= coding.least_dense;
  if (coding.family == Family::kRaw || tensor.dtype != DType::kBF16 || !worth) return {};
  if (coding.family == Family::kSplit) return {Encoding::kSplit, {}};
  const std::uint64_t columns = tensor.shape.size() < 2 ? 0 : tensor.shape.back();
  if (columns == 0 || piece.first % columns != 0 || piece.count % columns != 0) return {};  // no matrix
  const codec::TileShape matrix{piece.count / columns, columns};
  return {Encoding::kSplit, coding.keep_columns ? matrix : codec::stored_shape(matrix)};
}

PackSlices::PackSlices(const Weights& weights, const std::vector<PackUnit>& units, const Coding& coding,
                       std::size_t first_unit)
    : weights_(weights), units_(units), coding_(coding), next_unit_(first_unit) {}

bool PackSlices::next(SliceRange& slice) {
  if (queue_.empty()) {
    if (next_unit_ == units_.size()) return false;
    list(next_unit_++);
  }
  slice = queue_.front();
  queue_.pop_front();
  return true;
}

void PackSlices::list(std::size_t index) {
  const PackUnit& unit = units_[index];
  for (std::size_t p = 0; p < unit.pieces.size(); ++p) {
    const UnitPiece& piece = unit.pieces[p];
    const TensorPlace& place = weights_.places[piece.tensor];
    const Bytes width = dtype_bytes(weights_.tensors[piece.tensor].dtype);
    const PieceCoding coding = coding_of(weights_, unit, piece, coding_);
    const bool tiled = coding.tiles.rows > 0;
    // What is cut: elements, or groups of rows.
    const std::uint64_t items = tiled ? coding.tiles.groups() : piece.count,
                        places = tiled ? coding.tiles.group_places() : 1;
    const auto add = [&](std::uint64_t begin, std::uint64_t count) {
      if (count == 0) return;
      SliceRange slice{.unit = index,
                       .piece = p,
                       .first = begin * places,
                       .count = count * places,
                       .encoding = coding.encoding,
                       .tiles = {},
                       .file = place.file};
      std::uint64_t first = begin, elements = count;
      if (tiled) {
        const codec::TileRows rows = codec::tile_rows(coding.tiles, slice.first, slice.count);
        slice.tiles = rows.shape;
        first = rows.first_row * rows.shape.columns;
        elements = rows.shape.rows * rows.shape.columns;
      }
      slice.offset = place.offset + (piece.first + first) * width;
      slice.length = elements * width;
      queue_.push_back(slice);
    };
    if (coding.encoding == Encoding::kSplit && unit.is_expert) {
      for (unsigned chunk = 0; chunk < coding_.chunks; ++chunk) {
        const codec::ElementRange range = codec::shard_range(items, coding_.chunks, chunk);
        add(range.begin, range.size());
      }
    } else {
      const std::uint64_t step = coding.encoding == Encoding::kSplit
                                     ? std::max<std::uint64_t>(1, kDenseChunkElements / places)
                                     : kRawSliceBytes / width;
      for (std::uint64_t first = 0; first < items; first += step) add(first, std::min(step, items - first));
    }
  }
  if (queue_.empty()) queue_.push_back({.unit = index});  // nothing but pieces without elements
  queue_.back().last = true;
}

}  // namespace sluice::store
