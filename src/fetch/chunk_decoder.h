// Turns stored bytes into the words of a view, one exponent chunk or piece at a time. SPEC §1.2.
#pragma once

#include <cstddef>
#include <string>

#include "base/machine/cpu.h"
#include "codec/exponents/plane_decoder.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

// `words` and `exponents` are the buffers in which the places of pieces and of their chunks are counted (they
// may be the same buffer); `view` is the buffer of view_place. Thread-safe. Errors name the file and the
// place of the bytes in it.
class ChunkDecoder {
 public:
  // `codec` is the checkpoint's ("none" for directories). `files` must outlive this.
  ChunkDecoder(const WeightFiles& files, Isa isa, const std::string& codec);

  // Checks the checksums of a piece's planes in `words`, if the piece has some, and what its format says of
  // their content. Error(kCorrupt).
  void check(const PiecePlace& piece, const std::byte* words) const;
  // Checks the checksum of a chunk and, for a chunk in tiles, its structure: everything except what its codes
  // say, because kernels may compute with such a chunk directly. Error(kCorrupt).
  void check(const PiecePlace& piece, const codec::PlaneChunk& chunk, const std::byte* exponents) const;
  // Checks also the codes of chunks in tiles that check() accepted: it finds the damaged one after a kernel
  // has found that one is damaged. Error(kCorrupt).
  void check_codes(const PiecePlace& piece, const std::byte* exponents) const;
  // Checks a chunk (or an LSB slice) and decodes it into the upper half of its own words in `view`. For tiles
  // two passes gain nothing, so merge() does all the work. Null view: only checks. Error(kCorrupt).
  void decode(const PiecePlace& piece, const codec::PlaneChunk& chunk, const std::byte* exponents,
              std::byte* view) const;
  // Merges the output of decode() and the sign+mantissa plane into words. Error(kCorrupt).
  void merge(const PiecePlace& piece, const codec::PlaneChunk& chunk, const std::byte* words,
             const std::byte* exponents, std::byte* view) const;
  // Copies a piece that is stored whole.
  static void copy(const PiecePlace& piece, const std::byte* words, std::byte* view);

 private:
  const WeightFiles& files_;
  const codec::PlaneDecoder decoder_;
};

}  // namespace sluice::fetch
