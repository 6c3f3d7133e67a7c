// From stored bytes to the words of a view, one exponent chunk or piece at a time. SPEC §1.2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/cpu.h"
#include "codec/exponent_codec.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

// `words` and `exponents` are the buffers that the places of pieces and of their chunks are counted in (they
// may be one and the same), `view` the one of view_place. Thread-safe. Errors name file and offset.
class ChunkDecoder {
 public:
  // `codec` is the checkpoint's ("none" for directories). `files` must outlive this.
  ChunkDecoder(const WeightFiles& files, Isa isa, const std::string& codec);
  ~ChunkDecoder();

  // The checksum of a piece's bytes in `words`, if it has one. Error(kCorrupt).
  void check(const PiecePlace& piece, const std::byte* words) const;
  // Exponents of a chunk into the upper half of the chunk's own words in `view`. Checks the chunk first.
  // Error(kCorrupt).
  void decode(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* exponents,
              std::byte* view) const;
  // What decode() left, and the sign+mantissa plane, into words.
  void merge(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* words, std::byte* view) const;
  // A piece that is stored whole.
  static void copy(const PiecePlace& piece, const std::byte* words, std::byte* view);

 private:
  const WeightFiles& files_;
  void (*merge_)(const std::byte* exponents, const std::byte* sign_mantissas, std::size_t count,
                 std::byte* words);
  std::unique_ptr<const codec::ExponentCodec> codec_;
};

// Bytes of the piece where `place` is: whole words, or the sign+mantissa plane.
inline Bytes stored_bytes(const PiecePlace& piece) {
  return piece.split ? piece.elements : piece.raw_bytes();
}

}  // namespace sluice::fetch
