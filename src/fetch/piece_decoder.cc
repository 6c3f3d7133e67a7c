#include "fetch/piece_decoder.h"

namespace sluice::fetch {

PieceDecoder::PieceDecoder(const WeightFiles& files, ThreadPool& pool, Isa isa, const std::string& codec)
    : pool_(pool), decoder_(files, isa, codec) {}

void PieceDecoder::decode(const PieceLayout& layout, const std::byte* read_buffer, std::byte* view_buffer) {
  jobs_.clear();
  for (const PiecePlace& piece : layout.pieces) {
    if (piece.needs_check() || (layout.needs_decode && !piece.coded())) jobs_.push_back({&piece, nullptr});
    for (const codec::PlaneChunk& chunk : piece.chunks) jobs_.push_back({&piece, &chunk});
  }
  pool_.parallel_for(jobs_.size(), [&](std::size_t i) {
    const auto& [piece, chunk] = jobs_[i];
    if (chunk == nullptr) {
      decoder_.check(*piece, read_buffer);
      if (layout.needs_decode && !piece->coded()) ChunkDecoder::copy(*piece, read_buffer, view_buffer);
    } else {
      decoder_.decode(*piece, *chunk, read_buffer, view_buffer);
      decoder_.merge(*piece, *chunk, read_buffer, read_buffer, view_buffer);
    }
  });
}

void PieceDecoder::check(const PieceLayout& layout, const std::byte* read_buffer) {
  jobs_.clear();
  for (const PiecePlace& piece : layout.pieces) {
    jobs_.push_back({&piece, nullptr});
    for (const codec::PlaneChunk& chunk : piece.chunks) jobs_.push_back({&piece, &chunk});
  }
  pool_.parallel_for(jobs_.size(), [&](std::size_t i) {
    const auto& [piece, chunk] = jobs_[i];
    if (chunk == nullptr) {
      decoder_.check(*piece, read_buffer);
    } else {
      decoder_.check(*piece, *chunk, read_buffer);
    }
  });
}

}  // namespace sluice::fetch
