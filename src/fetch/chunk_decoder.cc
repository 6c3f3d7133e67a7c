#include "fetch/chunk_decoder.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "codec/matrix_format.h"
#include "device/space.h"
#include "fetch/checked_hash.h"

namespace sluice::fetch {
namespace {

codec::ChunkKind kind_of(const codec::PlaneChunk& chunk) {
  return chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw;
}

// The chunk's words in the view, and their rows if the piece is in tiles.
struct ChunkWords {
  std::span<std::byte> words;
  codec::TileShape tiles;
};
ChunkWords words_of(const PiecePlace& piece, const codec::PlaneChunk& chunk, std::byte* view) {
  std::byte* const first = view + piece.view_place;
  const auto bytes = [](std::uint64_t rows, std::uint64_t columns) {
    return codec::kFormatBf16.bytes({rows, columns});
  };
  if (!piece.tiled()) return {{first + bytes(1, chunk.first), bytes(1, chunk.count)}, {}};
  const codec::TileRows rows = codec::tile_rows(piece.tiles(), chunk.first, chunk.count);
  return {{first + bytes(rows.first_row, rows.shape.columns), bytes(rows.shape.rows, rows.shape.columns)},
          rows.shape};
}

// Adds the place of the chunk to a codec's error.
[[noreturn]] void throw_in_chunk(Error& error, const std::string& path, const PiecePlace& piece,
                                 const codec::PlaneChunk& chunk) {
  throw error.in(path, piece.file_offset_of(chunk))
      .found(fmt::format("{} (in a chunk of {} bytes)", error.found_text(), chunk.bytes));
}

}  // namespace

ChunkDecoder::ChunkDecoder(const WeightFiles& files, Isa isa, const std::string& codec)
    : files_(files), decoder_(codec, isa) {}

void ChunkDecoder::check(const PiecePlace& piece, const std::byte* words) const {
  if (piece.has_checksums)
    for (const PlanePlace& plane : piece.base())
      check_hash({words + plane.place, plane.bytes}, plane.xxh3, files_.path(piece.file), plane.file_offset);
  if (piece.format == nullptr || piece.format->check == nullptr) return;
  codec::MatrixRef matrix{piece.format, piece.shape, {}, {}};
  for (std::size_t plane = 0; plane < piece.base_planes; ++plane)
    matrix.planes[plane] = device::host_space().address(words + piece.planes[plane].place);
  try {
    piece.format->check(matrix);
  } catch (Error& error) {
    throw error.in(files_.path(piece.file), piece.planes[0].file_offset);
  }
}

void ChunkDecoder::check(const PiecePlace& piece, const codec::PlaneChunk& chunk,
                         const std::byte* exponents) const {
  const std::span<const std::byte> stored(exponents + chunk.place, chunk.bytes);
  check_hash(stored, chunk.xxh3, files_.path(piece.file), piece.file_offset_of(chunk));
  if (!piece.coded() || !piece.tiled() || !chunk.coded) return;
  const codec::TileShape rows = codec::tile_rows(piece.tiles(), chunk.first, chunk.count).shape;
  try {
    codec::NativeChunk(stored, {rows.groups(), rows.blocks()});
  } catch (Error& error) {
    throw_in_chunk(error, files_.path(piece.file), piece, chunk);
  }
}

void ChunkDecoder::check_codes(const PiecePlace& piece, const std::byte* exponents) const {
  SLUICE_CHECK(piece.tiled());
  for (const codec::PlaneChunk& chunk : piece.chunks) {
    const std::span<const std::byte> stored(exponents + chunk.place, chunk.bytes);
    if (const std::uint64_t found = xxh3(stored); found != chunk.xxh3)
      throw Error(ErrorKind::kCorrupt,
                  fmt::format("{} bytes of weights have changed since they were read", stored.size()))
          .in(files_.path(piece.file), piece.file_offset_of(chunk))
          .expected(hex64(chunk.xxh3))
          .found(hex64(found))
          .fix("check the machine's memory");
    const codec::TileShape rows = codec::tile_rows(piece.tiles(), chunk.first, chunk.count).shape;
    try {
      decoder_.check(kind_of(chunk), stored, rows, rows.rows * rows.columns);
    } catch (Error& error) {
      throw_in_chunk(error, files_.path(piece.file), piece, chunk);
    }
  }
}

void ChunkDecoder::decode(const PiecePlace& piece, const codec::PlaneChunk& chunk, const std::byte* exponents,
                          std::byte* view) const {
  const std::span<const std::byte> stored(exponents + chunk.place, chunk.bytes);
  check(piece, chunk, exponents);
  if (piece.tiled() || view == nullptr) return;
  const std::span<std::byte> target = words_of(piece, chunk, view).words;
  try {
    decoder_.exponents(kind_of(chunk), stored, {}, target.last(chunk.count));
  } catch (Error& error) {
    throw_in_chunk(error, files_.path(piece.file), piece, chunk);
  }
}

void ChunkDecoder::merge(const PiecePlace& piece, const codec::PlaneChunk& chunk, const std::byte* words,
                         const std::byte* exponents, std::byte* view) const {
  const ChunkWords target = words_of(piece, chunk, view);
  const std::span<const std::byte> plane(words + piece.planes[0].place + chunk.first, chunk.count);
  if (!piece.tiled()) return decoder_.merge(target.words.last(chunk.count), plane, target.words);
  try {
    decoder_.words(kind_of(chunk), {exponents + chunk.place, chunk.bytes}, plane, target.tiles, target.words);
  } catch (Error& error) {
    throw_in_chunk(error, files_.path(piece.file), piece, chunk);
  }
}

void ChunkDecoder::copy(const PiecePlace& piece, const std::byte* words, std::byte* view) {
  for (std::size_t plane = 0; plane < piece.base_planes; ++plane)
    std::memcpy(view + piece.view_place + piece.view_plane(plane), words + piece.planes[plane].place,
                piece.planes[plane].bytes);
}

}  // namespace sluice::fetch
