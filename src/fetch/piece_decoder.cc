#include "fetch/piece_decoder.h"

#include <cstring>

#include "base/error.h"
#include "codec/bf16_split.h"
#include "fetch/checked_hash.h"

namespace sluice::fetch {

PieceDecoder::PieceDecoder(const WeightFiles& files, ThreadPool& pool, Isa isa, const std::string& codec)
    : files_(files), pool_(pool), merge_(codec::bf16_split_kernels(isa).merge), codec_(codec::make_exponent_codec(codec)) {}

PieceDecoder::~PieceDecoder() = default;

void PieceDecoder::decode(const PieceLayout& layout, const std::byte* read_buffer, std::byte* view_buffer) {
  jobs_.clear();
  for (const PiecePlace& piece : layout.pieces) {
    if (piece.xxh3 || (layout.needs_decode && !piece.split)) jobs_.push_back({&piece, nullptr});
    for (const ChunkPlace& chunk : piece.chunks) jobs_.push_back({&piece, &chunk});
  }
  if (jobs_.empty()) return;
  pool_.parallel_for(jobs_.size(),
                     [&](std::size_t i) { run(jobs_[i], read_buffer, view_buffer, layout.needs_decode); });
}

void PieceDecoder::run(const Job& job, const std::byte* read_buffer, std::byte* view_buffer, bool copy_raw) const {
  const PiecePlace& piece = *job.piece;
  const std::string& path = files_.path(piece.file);
  if (job.chunk == nullptr) {
    const std::span<const std::byte> stored(read_buffer + piece.place, piece.split ? piece.elements : piece.raw_bytes());
    if (piece.xxh3) check_hash(stored, *piece.xxh3, path, piece.file_offset);
    if (copy_raw && !piece.split) std::memcpy(view_buffer + piece.view_place, stored.data(), stored.size());
    return;
  }
  const ChunkPlace& chunk = *job.chunk;
  const std::span<const std::byte> stored(read_buffer + chunk.place, chunk.stored_bytes);
  check_hash(stored, chunk.xxh3, path, chunk.file_offset);
  // The exponents are decoded into the upper half of the chunk's own words (codec/bf16_split.h allows that overlap).
  std::byte* words = view_buffer + piece.view_place + 2 * chunk.first_element;
  const std::span<std::byte> exponents(words + chunk.elements, chunk.elements);
  try {
    codec_->decode(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw, stored, exponents);
  } catch (Error& error) {
    throw error.in(path, chunk.file_offset);
  }
  merge_(exponents.data(), read_buffer + piece.place + chunk.first_element, chunk.elements, words);
}

}  // namespace sluice::fetch
