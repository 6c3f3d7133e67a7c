#include "fetch/piece_layout.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

// Two extents are read as one when the bytes between them cost less than a second request would.
constexpr Bytes kMaxGapBytes = 32 * kKiB;
// Views start on cache lines.
constexpr Bytes kViewAlignment = 64;

std::vector<store::Extent> extents_of(std::span<const store::StoredPiece> pieces) {
  std::vector<store::Extent> extents;
  for (const store::StoredPiece& piece : pieces) {
    extents.push_back(main_extent(piece));
    for (const store::ExponentChunk& chunk : piece.exponents) extents.push_back(chunk.extent);
  }
  return extents;
}

// Where the bytes of `extent` are among the runs' places.
Bytes place_of(std::span<const FileRun> runs, const store::Extent& extent) {
  if (extent.length == 0) return 0;
  for (const FileRun& run : runs)
    if (run.file == extent.file && extent.offset >= run.offset && extent.offset < run.offset + run.length)
      return run.place + (extent.offset - run.offset);
  SLUICE_CHECK(false, "an extent is in no run");
  return 0;
}

}  // namespace

const store::Extent& main_extent(const store::StoredPiece& piece) {
  switch (piece.encoding) {
    case store::Encoding::kRaw:
      return piece.raw;
    case store::Encoding::kSplit:
      return piece.sm;
    case store::Encoding::kSliced:
      return piece.msb;
    case store::Encoding::kInt8:
      return piece.int8;
  }
  SLUICE_CHECK(false, std::to_string(static_cast<int>(piece.encoding)));
}

std::vector<FileRun> join_extents(std::vector<store::Extent> extents) {
  std::erase_if(extents, [](const store::Extent& extent) { return extent.length == 0; });
  std::sort(extents.begin(), extents.end(), [](const store::Extent& a, const store::Extent& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  std::vector<FileRun> runs;
  for (const store::Extent& extent : extents) {
    const Bytes begin = round_down(extent.offset, kBlockBytes);
    const Bytes end = round_up(extent.offset + extent.length, kBlockBytes);
    if (!runs.empty() && runs.back().file == extent.file &&
        begin <= runs.back().offset + runs.back().length + kMaxGapBytes) {
      runs.back().length = std::max(runs.back().length, end - runs.back().offset);
    } else {
      runs.push_back({extent.file, begin, end - begin, 0});
    }
  }
  Bytes place = 0;
  for (FileRun& run : runs) {
    run.place = place;
    place += run.length;
  }
  return runs;
}

PiecePlace place_piece(const store::StoredPiece& piece, std::span<const FileRun> base,
                       std::span<const FileRun> rest, Bytes* view_bytes, codec::SliceBits bits) {
  PiecePlace place;
  place.split = piece.encoding == store::Encoding::kSplit;
  const store::Extent& main = main_extent(piece);
  place.dtype = piece.dtype;
  place.elements = piece.elements;
  place.tiles = piece.tiles;
  place.own_columns = piece.own_columns;
  place.file = main.file;
  place.file_offset = main.offset;
  place.place = place_of(base, main);
  place.xxh3 = piece.xxh3;
  for (const store::ExponentChunk& chunk : piece.exponents)
    place.chunks.push_back({place_of(rest, chunk.extent), chunk.extent.length, chunk.first_element,
                            chunk.elements, chunk.xxh3, chunk.extent.offset, chunk.coded});
  if (piece.encoding == store::Encoding::kSliced) {
    place.slices = {piece.matrix, bits};
    place.chunks.push_back({place_of(rest, piece.lsb), piece.lsb.length, 0, piece.elements, piece.lsb_xxh3,
                            piece.lsb.offset, false});
  }
  if (piece.encoding == store::Encoding::kSliced || piece.encoding == store::Encoding::kInt8)
    place.codes = main.length;
  place.view_place = place.place;
  if (view_bytes != nullptr) {
    place.view_place = *view_bytes;
    *view_bytes += round_up(place.raw_bytes(), kViewAlignment);
  }
  return place;
}

PieceLayout lay_out(std::span<const store::StoredPiece> pieces) {
  PieceLayout layout;
  const std::vector<store::Extent> extents = extents_of(pieces);
  layout.runs = join_extents(extents);
  for (const FileRun& run : layout.runs) layout.read_bytes += run.length;
  for (const store::Extent& extent : extents) layout.stored_bytes += extent.length;
  for (const store::StoredPiece& piece : pieces)
    layout.needs_decode |= piece.encoding == store::Encoding::kSplit;

  for (const store::StoredPiece& piece : pieces)
    layout.pieces.push_back(
        place_piece(piece, layout.runs, layout.runs, layout.needs_decode ? &layout.view_bytes : nullptr));
  if (!layout.needs_decode) layout.view_bytes = layout.read_bytes;
  return layout;
}

}  // namespace sluice::fetch
