// From the read buffer to a computable view: checksums, exponent chunks, merging. SPEC §1.2.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/machine/cpu.h"
#include "base/machine/thread_pool.h"
#include "fetch/chunk_decoder.h"
#include "fetch/piece_layout.h"
#include "fetch/weight_files.h"

namespace sluice::fetch {

// Thread-compatible; spreads its work over the pool, one job per exponent chunk or checksum.
class PieceDecoder {
 public:
  // `codec` is the checkpoint's ("none" for directories). All references must outlive this.
  PieceDecoder(const WeightFiles& files, ThreadPool& pool, Isa isa, const std::string& codec);

  // Checks every checksum of the pieces in `read_buffer` and, where the layout needs it, writes the words of
  // each piece to view_buffer + view_place (view_bytes in all). Error(kCorrupt) names file and offset.
  void decode(const PieceLayout& layout, const std::byte* read_buffer, std::byte* view_buffer);
  // Checks only the checksums, for pieces that are kept in their stored form. Error(kCorrupt) likewise.
  void check(const PieceLayout& layout, const std::byte* read_buffer);
  // As ChunkDecoder::check_codes.
  void check_codes(const PiecePlace& piece, const std::byte* read_buffer) const {
    decoder_.check_codes(piece, read_buffer);
  }

 private:
  struct Job {
    const PiecePlace* piece;
    // Null: checksum (and, for a raw piece of a decoded view, copy) of the piece itself.
    const codec::PlaneChunk* chunk;
  };

  ThreadPool& pool_;
  const ChunkDecoder decoder_;
  std::vector<Job> jobs_;  // reused between calls
};

}  // namespace sluice::fetch
