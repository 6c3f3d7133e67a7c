#include "fetch/chunk_decoder.h"

#include <cstring>

#include "base/error.h"
#include "codec/bf16_split.h"
#include "fetch/checked_hash.h"

namespace sluice::fetch {
namespace {

std::byte* words_of(const PiecePlace& piece, const ChunkPlace& chunk, std::byte* view) {
  return view + piece.view_place + 2 * chunk.first_element;
}

}  // namespace

ChunkDecoder::ChunkDecoder(const WeightFiles& files, Isa isa, const std::string& codec)
    : files_(files),
      merge_(codec::bf16_split_kernels(isa).merge),
      codec_(codec::make_exponent_codec(codec)) {}

ChunkDecoder::~ChunkDecoder() = default;

void ChunkDecoder::check(const PiecePlace& piece, const std::byte* words) const {
  if (piece.xxh3)
    check_hash({words + piece.place, stored_bytes(piece)}, *piece.xxh3, files_.path(piece.file),
               piece.file_offset);
}

void ChunkDecoder::decode(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* exponents,
                          std::byte* view) const {
  const std::span<const std::byte> stored(exponents + chunk.place, chunk.stored_bytes);
  const std::string& path = files_.path(piece.file);
  check_hash(stored, chunk.xxh3, path, chunk.file_offset);
  try {
    codec_->decode(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw, stored,
                   {words_of(piece, chunk, view) + chunk.elements, chunk.elements});
  } catch (Error& error) {
    throw error.in(path, chunk.file_offset);
  }
}

void ChunkDecoder::merge(const PiecePlace& piece, const ChunkPlace& chunk, const std::byte* words,
                         std::byte* view) const {
  std::byte* const target = words_of(piece, chunk, view);
  merge_(target + chunk.elements, words + piece.place + chunk.first_element, chunk.elements, target);
}

void ChunkDecoder::copy(const PiecePlace& piece, const std::byte* words, std::byte* view) {
  std::memcpy(view + piece.view_place, words + piece.place, piece.raw_bytes());
}

}  // namespace sluice::fetch
