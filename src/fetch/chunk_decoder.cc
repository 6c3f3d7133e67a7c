#include "fetch/chunk_decoder.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "fetch/checked_hash.h"

namespace sluice::fetch {
namespace {

codec::ChunkKind kind_of(const ChunkPlace& chunk) {
  return chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw;
}

// The chunk's words in the view, and their rows if the piece is in tiles.
struct ChunkWords {
  std::span<std::byte> words;
  codec::TileShape tiles;
};
ChunkWords words_of(const PiecePlace& piece, const ChunkPlace& chunk, std::byte* view) {
  std::byte* const first = view + piece.view_place;
  if (!piece.tiled()) return {{first + 2 * chunk.first_element, 2 * chunk.elements}, {}};
  const codec::TileRows rows = codec::tile_rows(piece.tiles, chunk.first_element, chunk.elements);
  return {{first + 2 * rows.first_row * rows.shape.columns, 2 * rows.shape.rows * rows.shape.columns},
          rows.shape};
}

// Adds the place of the chunk to a codec's error.
[[noreturn]] void throw_in_chunk(Error& error, const std::string& path, const ChunkPlace& chunk) {
  throw error.in(path, chunk.file_offset)
      .found(fmt::format("{} (in a chunk of {} bytes)", error.found_text(), chunk.stored_bytes));
}

}  // namespace

ChunkDecoder::ChunkDecoder(const WeightFiles& files, Isa isa, const std::string& codec)
    : files_(files), decoder_(codec, isa) {}

void ChunkDecoder::check(const PiecePlace& piece, const std::byte* words) const {
  if (piece.xxh3)
    check_hash({words + piece.place, stored_bytes(piece)}, *piece.xxh3, files_.path(piece.file),
               piece.file_offset);
}

void ChunkDecoder::check(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* exponents) const {
  const std::span<const std::byte> stored(exponents + chunk.place, chunk.stored_bytes);
  check_hash(stored, chunk.xxh3, files_.path(piece.file), chunk.file_offset);
  if (!piece.split || !piece.tiled() || !chunk.coded) return;
  const codec::TileShape rows = codec::tile_rows(piece.tiles, chunk.first_element, chunk.elements).shape;
  try {
    codec::NativeChunk(stored, {rows.groups(), rows.blocks()});
  } catch (Error& error) {
    throw_in_chunk(error, files_.path(piece.file), chunk);
  }
}

void ChunkDecoder::check_codes(const PiecePlace& piece, const std::byte* exponents) const {
  SLUICE_CHECK(piece.tiled());
  for (const ChunkPlace& chunk : piece.chunks) {
    const std::span<const std::byte> stored(exponents + chunk.place, chunk.stored_bytes);
    if (const std::uint64_t found = xxh3(stored); found != chunk.xxh3)
      throw Error(ErrorKind::kCorrupt,
                  fmt::format("{} bytes of weights have changed since they were read", stored.size()))
          .in(files_.path(piece.file), chunk.file_offset)
          .expected(hex64(chunk.xxh3))
          .found(hex64(found))
          .fix("check the machine's memory");
    const codec::TileShape rows = codec::tile_rows(piece.tiles, chunk.first_element, chunk.elements).shape;
    try {
      decoder_.check(kind_of(chunk), stored, rows, rows.rows * rows.columns);
    } catch (Error& error) {
      throw_in_chunk(error, files_.path(piece.file), chunk);
    }
  }
}

void ChunkDecoder::decode(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* exponents,
                          std::byte* view) const {
  const std::span<const std::byte> stored(exponents + chunk.place, chunk.stored_bytes);
  check(piece, chunk, exponents);
  if (piece.tiled() || view == nullptr) return;
  const std::span<std::byte> target = words_of(piece, chunk, view).words;
  try {
    decoder_.exponents(kind_of(chunk), stored, {}, target.last(chunk.elements));
  } catch (Error& error) {
    throw_in_chunk(error, files_.path(piece.file), chunk);
  }
}

void ChunkDecoder::merge(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* words,
                         const std::byte* exponents, std::byte* view) const {
  const ChunkWords target = words_of(piece, chunk, view);
  const std::span<const std::byte> plane(words + piece.place + chunk.first_element, chunk.elements);
  if (!piece.tiled()) return decoder_.merge(target.words.last(chunk.elements), plane, target.words);
  try {
    decoder_.words(kind_of(chunk), {exponents + chunk.place, chunk.stored_bytes}, plane, target.tiles,
                   target.words);
  } catch (Error& error) {
    throw_in_chunk(error, files_.path(piece.file), chunk);
  }
}

void ChunkDecoder::copy(const PiecePlace& piece, const std::byte* words, std::byte* view) {
  std::memcpy(view + piece.view_place, words + piece.place, piece.raw_bytes());
}

}  // namespace sluice::fetch
