// Where the stored bytes of a few pieces go in one read buffer, and how a computable view is made from them.
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
// near each other share a run: an expert of a packed store is exactly one run.
struct FileRun {
  std::uint32_t file = 0;
  Bytes offset = 0, length = 0;
  Bytes place = 0;
};

struct ChunkPlace {
  Bytes place = 0;  // in the read buffer
  Bytes stored_bytes = 0;
  std::uint64_t first_element = 0, elements = 0;  // elements of the piece (places, in tiles)
  std::uint64_t xxh3 = 0;
  Bytes file_offset = 0;  // for errors
  bool coded = false;
};

struct PiecePlace {
  DType dtype = DType::kBF16;
  bool split = false;
  codec::TileShape tiles;                 // for a split piece in tiles
  bool own_columns = false;               // the tiles have the tensor's columns
  codec::SlicedShape slices{{}, {0, 0}};  // for a piece in slices; `chunks` then is its LSB slice
  Bytes codes = 0;                        // for a rounded piece: its bytes at `place`
  std::uint64_t elements = 0;
  std::uint32_t file = 0;  // for errors
  Bytes file_offset = 0;   // where `raw`, `sm`, `msb` or `int8` begins
  Bytes place = 0;         // its place in the read buffer
  std::optional<std::uint64_t> xxh3;
  std::vector<ChunkPlace> chunks;
  Bytes view_place = 0;  // place of the piece's words in the view buffer
  Bytes raw_bytes() const { return elements * dtype_bytes(dtype); }
  bool tiled() const { return tiles.rows > 0; }
  bool sliced() const { return slices.bits.high > 0; }
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
// The place of a piece among runs that hold its main bytes and its chunks. `view_bytes`: size of the view so
// far, to which the piece is added; null: the read buffer is the view. `bits`: for a piece in slices.
PiecePlace place_piece(const store::StoredPiece& piece, std::span<const FileRun> base,
                       std::span<const FileRun> rest, Bytes* view_bytes, codec::SliceBits bits = {});
// The extent of a piece that is neither an exponent chunk nor an LSB slice.
const store::Extent& main_extent(const store::StoredPiece& piece);

}  // namespace sluice::fetch
