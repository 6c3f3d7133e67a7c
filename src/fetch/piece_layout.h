// Where the stored bytes of a few pieces land in one read buffer, and how a computable view is made from
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// One run of a weight file, block-aligned at both ends, and its place in the read buffer. Extents that are
// near each other share a run: an expert of a packed store is exactly one.
struct FileRun {
  std::uint32_t file = 0;
  Bytes offset = 0, length = 0;
  Bytes place = 0;
};

struct ChunkPlace {
  Bytes place = 0;  // in the read buffer
  Bytes stored_bytes = 0;
  std::uint64_t first_element = 0, elements = 0;  // of the piece; places, in tiles
  std::uint64_t xxh3 = 0;
  Bytes file_offset = 0;  // for errors
  bool coded = false;
};

struct PiecePlace {
  DType dtype = DType::kBF16;
  bool split = false;
  codec::TileShape tiles;                 // of a split piece in tiles
  bool own_columns = false;               // the tiles' columns are the tensor's
  codec::SlicedShape slices{{}, {0, 0}};  // of a piece in slices; `chunks` then is its LSB slice
  Bytes codes = 0;                        // of a rounded piece: its bytes at `place`
  std::uint64_t elements = 0;
  std::uint32_t file = 0;  // for errors
  Bytes file_offset = 0;   // of `raw`, `sm`, `msb` or `int8`
  Bytes place = 0;         // of that in the read buffer
  std::optional<std::uint64_t> xxh3;
  std::vector<ChunkPlace> chunks;
  Bytes view_place = 0;  // of the piece's words in the view buffer
  Bytes raw_bytes() const { return elements * dtype_bytes(dtype); }
  bool tiled() const { return tiles.rows > 0; }
  bool sliced() const { return slices.bits.high > 0; }
};

// Immutable once made. When nothing is split, the read buffer is the view buffer and no byte is copied.
struct PieceLayout {
  std::vector<FileRun> runs;
  std::vector<PiecePlace> pieces;
  Bytes read_bytes = 0;    // size of the read buffer (whole blocks)
  Bytes view_bytes = 0;    // size of the view buffer
  Bytes stored_bytes = 0;  // what the pieces take on disk, without padding
  bool needs_decode = false;
};

PieceLayout lay_out(std::span<const store::StoredPiece> pieces);

// Extents, in any order, as runs in ascending order of the files; those near each other share one.
std::vector<FileRun> join_extents(std::vector<store::Extent> extents);
// Where a piece lies among runs that hold its main bytes and its chunks. `view_bytes`: size of the view so
// far, which the piece is added to; null: what is read is the view. `bits`: of a piece in slices.
PiecePlace place_piece(const store::StoredPiece& piece, std::span<const FileRun> base,
                       std::span<const FileRun> rest, Bytes* view_bytes, codec::SliceBits bits = {});
// The extent of a piece that is no exponent chunk and no LSB slice.
const store::Extent& main_extent(const store::StoredPiece& piece);

}  // namespace sluice::fetch
