#include "store/pack/pack_slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/setting.h"
#include "codec/exponents/shards.h"
#include "store/format.h"
#include "store/piece_encoding.h"

namespace sluice::store {
namespace {

constexpr Bytes kRawSliceBytes = 4 * kMiB;

}  // namespace

PieceEntry coding_of(const Weights& weights, const PackUnit& unit, const UnitPiece& piece,
                     const Coding& coding) {
  const TensorInfo& tensor = weights.tensors[piece.tensor];
  const std::uint64_t width = tensor.shape.empty() ? 0 : tensor.shape.back();
  const bool matrix = tensor.shape.size() >= 2 && width > 0 && piece.first % width == 0 &&
                      piece.count % width == 0 && codec::can_be_quantised(tensor.dtype);
  const auto entry = [&](Encoding encoding, codec::TileShape shape = {}) {
    return PieceEntry{.tensor = piece.tensor,
                      .first = piece.first,
                      .count = piece.count,
                      .encoding = encoding,
                      .tiles = shape};
  };
  if (piece.format != nullptr) {
    PieceEntry in_format = entry(Encoding::kFormat, {piece.shape.rows, piece.shape.columns});
    in_format.format = piece.format;
    return in_format;
  }
  const bool dense_enough = codec::kFormatBf16.bytes({1, piece.count}) >= coding.least_dense;
  if (unit.is_expert && coding.slices && piece.count > 0) {
    if (!matrix) {
      throw Error(ErrorKind::kUnsupported, "an expert cannot be stored in slices")
          .in(fmt::format("tensor \"{}\"", tensor.name))
          .expected("matrices of BF16, F16 or F32")
          .found(fmt::format("{} {}", dtype_name(tensor.dtype), tensor.shape_text()))
          .fix("leave " + Setting::kSlices + " out");
    }
    return entry(Encoding::kSliced, {piece.count / width, width});
  }
  if (coding.dense == DenseRounding::kInt8 && !unit.is_expert && !unit.is_range && matrix && dense_enough &&
      !std::binary_search(coding.exact.begin(), coding.exact.end(), piece.tensor))
    return entry(Encoding::kInt8, {piece.count / width, width});
  const bool worth = unit.is_expert ? piece.count > 0 : unit.is_range ? false : dense_enough;
  if (coding.planes == Planes::kNone || tensor.dtype != DType::kBF16 || !worth) return entry(Encoding::kRaw);
  if (coding.planes == Planes::kFlat) return entry(Encoding::kSplit);
  const std::uint64_t columns = tensor.shape.size() < 2 ? 0 : width;
  if (columns == 0 || piece.first % columns != 0 || piece.count % columns != 0)
    return entry(Encoding::kRaw);  // not a matrix
  const codec::TileShape shape{piece.count / columns, columns};
  return entry(Encoding::kSplit, coding.keep_columns ? shape : codec::stored_shape(shape));
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

void PackSlices::list_planes(std::size_t unit, std::size_t piece) {
  const std::span<const TensorRange> planes = units_[unit].pieces[piece].ranges();
  for (std::size_t plane = 0; plane < planes.size(); ++plane) {
    const TensorRange& range = planes[plane];
    const TensorPlace& place = weights_.places[range.tensor];
    const Bytes width = weights_.tensors[range.tensor].bytes_of(1);
    const std::uint64_t step = kRawSliceBytes / width;
    for (std::uint64_t at = 0; at < range.count; at += step) {
      const std::uint64_t count = std::min(step, range.count - at);
      queue_.push_back({.unit = unit,
                        .piece = piece,
                        .first = at,
                        .count = count,
                        .encoding = Encoding::kFormat,
                        .plane = plane,
                        .file = place.file,
                        .offset = place.offset + (range.first + at) * width,
                        .length = count * width});
    }
  }
}

void PackSlices::list(std::size_t index) {
  const PackUnit& unit = units_[index];
  for (std::size_t p = 0; p < unit.pieces.size(); ++p) {
    const UnitPiece& piece = unit.pieces[p];
    const PieceEntry coding = coding_of(weights_, unit, piece, coding_);
    if (piece.format != nullptr) {
      list_planes(index, p);
      continue;
    }
    const TensorPlace& place = weights_.places[piece.tensor];
    const Bytes width = weights_.tensors[piece.tensor].bytes_of(1);
    const bool split = encoding_of(coding).runs == Runs::kExponents, tiled = coding.tiled(),
               quantised = encoding_of(coding).rounded;
    const codec::CellShape matrix{coding.tiles.rows, coding.tiles.columns};  // if it is quantised
    // The items to cut: elements, groups of rows, or strips.
    const std::uint64_t items = tiled       ? coding.tiles.groups()
                                : quantised ? matrix.strips()
                                            : piece.count,
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
      } else if (quantised) {
        slice.matrix = codec::strip_rows(matrix, begin, count);
        first = begin * codec::kStripRows * matrix.columns;
        elements = slice.matrix.rows * slice.matrix.columns;
      }
      slice.offset = place.offset + (piece.first + first) * width;
      slice.length = elements * width;
      queue_.push_back(slice);
    };
    if (split && unit.is_expert) {
      for (unsigned chunk = 0; chunk < coding_.chunks; ++chunk) {
        const codec::ElementRange range = codec::shard_range(items, coding_.chunks, chunk);
        add(range.begin, range.size());
      }
    } else {
      const std::uint64_t item = quantised ? codec::kStripRows * matrix.columns : places;
      const std::uint64_t step = split || quantised ? std::max<std::uint64_t>(1, kDenseChunkElements / item)
                                                    : kRawSliceBytes / width;
      for (std::uint64_t first = 0; first < items; first += step) add(first, std::min(step, items - first));
    }
  }
  if (queue_.empty()) queue_.push_back({.unit = index});  // only pieces without elements
  queue_.back().last = true;
}

}  // namespace sluice::store
