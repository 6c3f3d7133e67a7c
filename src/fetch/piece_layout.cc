#include "fetch/piece_layout.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {
namespace {

// Two extents are read as one when the bytes between them cost less than a second request would.
constexpr Bytes kMaxGapBytes = 32 * kKiB;
// Views start on cache lines.
constexpr Bytes kViewAlignment = 64;

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

Bytes PiecePlace::view_bytes() const {
  if (coded()) return view_format()->bytes({1, elements});
  return view_plane(base_planes - 1) + planes[base_planes - 1].bytes;
}

Bytes PiecePlace::view_plane(std::size_t plane) const {
  Bytes place = 0;
  for (std::size_t before = 0; before < plane; ++before)
    place += round_up(planes[before].bytes, kViewAlignment);
  return place;
}

std::vector<store::Extent> extents_of(const store::StoredPiece& piece, codec::PlaneRegion region) {
  std::vector<store::Extent> extents;
  for (std::size_t plane = 0; plane < piece.plane_count(); ++plane) {
    const bool own = piece.format == nullptr || piece.format->planes[plane].region == region;
    if (own) extents.push_back(piece.planes[plane].extent);
  }
  if (region == codec::PlaneRegion::kRest)
    for (const store::ExponentChunk& chunk : piece.exponents) extents.push_back(chunk.extent);
  return extents;
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
                       std::span<const FileRun> rest, Bytes* view_bytes) {
  PiecePlace place;
  place.format = piece.format;
  place.shape = piece.shape;
  place.dtype = piece.dtype;
  place.own_columns = piece.own_columns;
  place.elements = piece.elements;
  place.file = piece.first().file;
  place.has_checksums = piece.planes[0].xxh3.has_value();
  place.base_planes = 0;
  const auto add_chunk = [&](const store::Extent& extent, codec::PlaneChunk chunk) {
    if (place.chunks.empty()) place.chunks_offset = extent.offset;
    chunk.place = place_of(rest, extent);
    chunk.bytes = extent.length;
    place.chunks.push_back(chunk);
  };
  for (std::size_t plane = 0; plane < piece.plane_count(); ++plane) {
    const store::StoredPlane& stored = piece.planes[plane];
    if (piece.format == nullptr || piece.format->planes[plane].region == codec::PlaneRegion::kBase) {
      SLUICE_CHECK(stored.xxh3.has_value() == place.has_checksums && place.base_planes == plane);
      place.planes[place.base_planes++] = {place_of(base, stored.extent), stored.extent.length,
                                           stored.extent.offset, stored.xxh3.value_or(0)};
    } else if (stored.extent.length > 0) {  // as an LSB slice: one run
      add_chunk(stored.extent, {.count = piece.elements, .xxh3 = stored.xxh3.value_or(0)});
    }
  }
  place.chunks.reserve(place.chunks.size() + piece.exponents.size());
  for (const store::ExponentChunk& chunk : piece.exponents)
    add_chunk(
        chunk.extent,
        {.first = chunk.first_element, .count = chunk.elements, .xxh3 = chunk.xxh3, .coded = chunk.coded});
  place.view_place = place.planes[0].place;
  if (view_bytes != nullptr) {
    place.view_place = *view_bytes;
    *view_bytes += round_up(place.view_bytes(), kViewAlignment);
  }
  return place;
}

PieceLayout lay_out(std::span<const store::StoredPiece> pieces) {
  PieceLayout layout;
  std::vector<store::Extent> extents;
  for (const store::StoredPiece& piece : pieces) {
    for (const codec::PlaneRegion region : {codec::PlaneRegion::kBase, codec::PlaneRegion::kRest}) {
      const std::vector<store::Extent> own = extents_of(piece, region);
      extents.insert(extents.end(), own.begin(), own.end());
      if (piece.format == nullptr) break;  // one plane
    }
    layout.needs_decode |= piece.coded();
  }
  layout.runs = join_extents(extents);
  for (const FileRun& run : layout.runs) layout.read_bytes += run.length;
  for (const store::Extent& extent : extents) layout.stored_bytes += extent.length;

  for (const store::StoredPiece& piece : pieces)
    layout.pieces.push_back(
        place_piece(piece, layout.runs, layout.runs, layout.needs_decode ? &layout.view_bytes : nullptr));
  if (!layout.needs_decode) layout.view_bytes = layout.read_bytes;
  return layout;
}

}  // namespace sluice::fetch
