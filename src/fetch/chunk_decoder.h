// From stored bytes to the words of a view, one exponent chunk or piece at a time. SPEC §1.2.
#pragma once

#include <cstddef>
#include <string>

#include "base/cpu.h"
#include "codec/plane_decoder.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

// `words` and `exponents` are the buffers that the places of pieces and of their chunks are counted in (they
// may be one and the same), `view` the one of view_place. Thread-safe. Errors name the file and where in it
// the bytes lie.
class ChunkDecoder {
 public:
  // `codec` is the checkpoint's ("none" for directories). `files` must outlive this.
  ChunkDecoder(const WeightFiles& files, Isa isa, const std::string& codec);

  // The checksum of a piece's bytes in `words`, if it has one. Error(kCorrupt).
  void check(const PiecePlace& piece, const std::byte* words) const;
  // The checksum of a chunk, and of one in tiles, which may be computed with as it is, the structure: all but
  // what its codes say. Error(kCorrupt).
  void check(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* exponents) const;
  // The codes too, of chunks in tiles that check() took: to say which of those is damaged that were computed
  // with. Error(kCorrupt).
  void check_codes(const PiecePlace& piece, const std::byte* exponents) const;
  // Checks a chunk (or an LSB slice) and decodes it, into the upper half of its own words in `view`; in tiles
  // there is nothing to be gained by two passes, and all is left to merge(). No view: only checks.
  // Error(kCorrupt).
  void decode(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* exponents,
              std::byte* view) const;
  // What decode() left, and the sign+mantissa plane, into words. Error(kCorrupt).
  void merge(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* words,
             const std::byte* exponents, std::byte* view) const;
  // A piece that is stored whole.
  static void copy(const PiecePlace& piece, const std::byte* words, std::byte* view);

 private:
  const WeightFiles& files_;
  const codec::PlaneDecoder decoder_;
};

// Bytes of the piece where `place` is: whole words, the sign+mantissa plane, the MSB slice, or codes.
inline Bytes stored_bytes(const PiecePlace& piece) {
  if (piece.codes > 0) return piece.codes;
  return !piece.split ? piece.raw_bytes() : piece.tiled() ? piece.tiles.places() : piece.elements;
}

}  // namespace sluice::fetch
