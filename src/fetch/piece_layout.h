// Where the stored bytes of a few pieces go in one read buffer, and how a computable view is made from them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "codec/matrix_format.h"
#include "codec/native/tiles.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// One run of a weight file, block-aligned at both ends, and its place in the read buffer. Extents that are
// near each other share a run: an expert of a packed store is exactly one run.
struct FileRun {
  std::uint32_t file = 0;
  Bytes offset = 0, length = 0;
  Bytes place = 0;
};

// Where a plane that is read as a whole lies.
struct PlanePlace {
  Bytes place = 0;  // in the read buffer
  Bytes bytes = 0;
  Bytes file_offset = 0;   // for errors
  std::uint64_t xxh3 = 0;  // if the piece has checksums
};

struct PiecePlace {
  const codec::MatrixFormat* format = nullptr;
  codec::MatrixShape shape;      // that the planes have
  DType dtype = DType::kBF16;    // the type of the words that a coded piece becomes
  bool own_columns = false;      // the tiles have the tensor's columns
  bool has_checksums = false;    // `planes` have them
  std::uint8_t base_planes = 1;  // how many of `planes` there are
  std::uint32_t file = 0;        // for errors
  std::uint64_t elements = 0;
  std::array<PlanePlace, codec::kMostPlanes> planes;  // those of the region `base`: the format's first ones
  // What lies in the region `rest`, with places in its read buffer: coded exponents, or each plane there (an
  // LSB slice) as one chunk.
  std::vector<codec::PlaneChunk> chunks;
  Bytes chunks_offset = 0;  // offset of the first chunk in the file; they stand one behind the other
  Bytes view_place = 0;     // place of the piece's words, or of its planes, in the view buffer

  // Exponents must be decoded before the piece is words.
  bool coded() const { return format != nullptr && !format->fixed_size(); }
  bool tiled() const { return format == &codec::kFormatPacked; }
  codec::TileShape tiles() const { return {shape.rows, shape.columns}; }
  std::span<const PlanePlace> base() const { return std::span(planes).first(base_planes); }
  bool needs_check() const { return has_checksums || (format != nullptr && format->check != nullptr); }
  // The format that the piece has in a view of words: its own, unless it is coded.
  const codec::MatrixFormat* view_format() const { return coded() ? codec::word_format(dtype) : format; }
  // Bytes in such a view, and where plane `plane` begins there, from view_place on.
  Bytes view_bytes() const;
  Bytes view_plane(std::size_t plane) const;
  Bytes file_offset_of(const codec::PlaneChunk& chunk) const {
    return chunks_offset + (chunk.place - chunks.front().place);
  }
};

// Immutable once made. When no piece is split, the read buffer is the view buffer and no byte is copied.
struct PieceLayout {
  std::vector<FileRun> runs;
  std::vector<PiecePlace> pieces;
  Bytes read_bytes = 0;    // size of the read buffer (whole blocks)
  Bytes view_bytes = 0;    // size of the view buffer
  Bytes stored_bytes = 0;  // bytes of the pieces on disk, without padding
  bool needs_decode = false;
};

PieceLayout lay_out(std::span<const store::StoredPiece> pieces);

// Extents in any order as runs, in ascending order of the files; extents near each other share a run.
std::vector<FileRun> join_extents(std::vector<store::Extent> extents);
// The place of a piece among runs that hold its planes and its chunks. `view_bytes`: size of the view so far,
// to which the piece is added; null: the read buffer is the view.
PiecePlace place_piece(const store::StoredPiece& piece, std::span<const FileRun> base,
                       std::span<const FileRun> rest, Bytes* view_bytes);
// The extents of a piece's planes in a region, those of chunks included.
std::vector<store::Extent> extents_of(const store::StoredPiece& piece, codec::PlaneRegion region);

}  // namespace sluice::fetch
