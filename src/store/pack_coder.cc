#include "store/pack_coder.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "codec/bf16_split.h"
#include "codec/native_chunk.h"
#include "codec/shards.h"

namespace sluice::store {
namespace {

std::span<const std::byte> words_of(const CodedSlice& slice) {
  return {slice.words.get(), static_cast<std::size_t>(slice.length)};
}

void split(const PackJob& job, CodedSlice& slice) {
  const auto count = static_cast<std::size_t>(slice.count);
  slice.sm = std::make_unique_for_overwrite<std::byte[]>(count);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(count);
  const std::span<std::byte> exponents(buffer.get(), count), sm(slice.sm.get(), count);
  const Isa isa = job.options.isa;
  if (job.codec != nullptr) {
    codec::split_bf16(words_of(slice), exponents, sm, isa);
    slice.words.reset();
    slice.chunk = job.codec->encode(exponents);
  } else {
    codec::split_tiles(words_of(slice), slice.tiles, exponents, sm, isa);
    slice.words.reset();
    slice.chunk = {codec::ChunkKind::kCodec, codec::encode_native(exponents, slice.tiles, isa)};
    if (slice.chunk.bytes.empty())
      slice.chunk = {codec::ChunkKind::kRaw, {exponents.begin(), exponents.end()}};
  }
  slice.chunk_xxh3 = xxh3(slice.chunk.bytes);
}

void quantise(const PackJob& job, CodedSlice& slice) {
  const auto& [tensor, first, count] = job.units[slice.unit].pieces[slice.piece];
  try {
    slice.strips = {slice.encoding,
                    slice.matrix,
                    job.options.slices.value_or(codec::SliceBits{}),
                    job.weights.tensors[tensor].dtype,
                    words_of(slice),
                    first / slice.matrix.columns + slice.first * codec::kStripRows};
  } catch (Error& error) {
    throw error.in(fmt::format("{}, tensor \"{}\", {}",
                               job.source_path(job.weights.files[slice.file].relative),
                               job.weights.tensors[tensor].name, error.where()));
  }
  slice.words.reset();
}

}  // namespace

void code_slice(const PackJob& job, CodedSlice& slice) {
  if (slice.is_quantised()) quantise(job, slice);
  if (slice.is_split()) split(job, slice);
}

void begin_unit(const PackJob& job, const PackUnit& unit, UnitWriter& writer) {
  std::vector<UnitWriter::PieceShape> shapes;
  shapes.reserve(unit.pieces.size());
  for (const UnitPiece& piece : unit.pieces) {
    const PieceCoding how = job.coding_of(unit, piece);
    shapes.push_back({piece.tensor, piece.first, piece.count, how.encoding, how.tiles, how.matrix,
                      piece.count * dtype_bytes(job.weights.tensors[piece.tensor].dtype)});
  }
  if (unit.is_expert)
    writer.begin_expert(unit.layer, unit.index, shapes);
  else
    writer.begin_dense(shapes.front());
}

void put_slice(const PackJob& job, const CodedSlice& slice, UnitWriter& writer) {
  if (slice.is_split()) {
    writer.put_split(slice.piece, slice.first, {slice.sm.get(), static_cast<std::size_t>(slice.count)},
                     slice.chunk, slice.chunk_xxh3);
  } else if (slice.is_quantised()) {
    writer.put_quantised(slice.piece, slice.first, slice.strips.parts());
  } else if (slice.length > 0) {
    const std::uint32_t tensor = job.units[slice.unit].pieces[slice.piece].tensor;
    writer.put_raw(slice.piece, slice.first * dtype_bytes(job.weights.tensors[tensor].dtype),
                   words_of(slice));
  }
}

}  // namespace sluice::store
