#include "store/pack/pack_coder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "codec/exponents/bf16_split.h"
#include "codec/exponents/shards.h"
#include "codec/matrix_format.h"
#include "codec/native/native_chunk.h"
#include "store/piece_encoding.h"

namespace sluice::store {
namespace {

std::span<const std::byte> words_of(const CodedSlice& slice) {
  return {slice.words.get(), static_cast<std::size_t>(slice.length)};
}

constexpr std::uint64_t kSplitStep = std::uint64_t{1}
                                     << 20;  // elements between two questions whether to stop

// The slice's words to planes, in the order in which the codec has them.
void split_words(const PackJob& job, const CodedSlice& slice, std::span<std::byte> exponents,
                 std::span<std::byte> sm, const StopRequest& stop) {
  const std::span<const std::byte> words = words_of(slice);
  const bool tiled = job.codec == nullptr;
  const std::uint64_t item = tiled ? slice.tiles.group_places() : 1;
  const std::uint64_t step = std::max<std::uint64_t>(1, kSplitStep / std::max<std::uint64_t>(1, item)) * item;
  for (std::uint64_t at = 0; at < slice.count; at += step) {
    stop_if(stop);
    const std::uint64_t count = std::min(step, slice.count - at);
    const std::span<std::byte> e = exponents.subspan(at, count), s = sm.subspan(at, count);
    if (tiled) {
      const codec::TileRows rows = codec::tile_rows(slice.tiles, at, count);
      const auto bytes = [&](std::uint64_t r) { return codec::kFormatBf16.bytes({r, rows.shape.columns}); };
      codec::split_tiles(words.subspan(bytes(rows.first_row), bytes(rows.shape.rows)), rows.shape, e, s,
                         job.options.isa);
    } else {
      codec::split_bf16(
          words.subspan(codec::kFormatBf16.bytes({1, at}), codec::kFormatBf16.bytes({1, count})), e, s,
          job.options.isa);
    }
  }
}

void split(const PackJob& job, CodedSlice& slice, const StopRequest& stop) {
  const auto count = static_cast<std::size_t>(slice.count);
  slice.sm = std::make_unique_for_overwrite<std::byte[]>(count);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(count);
  const std::span<std::byte> exponents(buffer.get(), count), sm(slice.sm.get(), count);
  split_words(job, slice, exponents, sm, stop);
  slice.words.reset();
  if (job.codec != nullptr) {
    slice.chunk = job.codec->encode(exponents, stop);
  } else {
    slice.chunk = {codec::ChunkKind::kCodec,
                   codec::encode_native(exponents, slice.tiles, job.options.isa, stop)};
    if (slice.chunk.bytes.empty())
      slice.chunk = {codec::ChunkKind::kRaw, {exponents.begin(), exponents.end()}};
  }
  slice.chunk_xxh3 = xxh3(slice.chunk.bytes);
}

void quantise(const PackJob& job, CodedSlice& slice) {
  const PackUnit& unit = job.units[slice.unit];
  const UnitPiece& piece = unit.pieces[slice.piece];
  const TensorInfo& tensor = job.weights.tensors[piece.tensor];
  try {
    slice.strips = {*matrix_of(job.manifest, job.coding_of(unit, piece)).format, slice.matrix, tensor.dtype,
                    words_of(slice), piece.first / slice.matrix.columns + slice.first * codec::kStripRows};
  } catch (Error& error) {
    throw error.in(fmt::format("{}, tensor \"{}\", {}",
                               job.source_path(job.weights.files[slice.file].relative), tensor.name,
                               error.where()));
  }
  slice.words.reset();
}

}  // namespace

void code_slice(const PackJob& job, CodedSlice& slice, const StopRequest& stop) {
  if (slice.is_quantised()) quantise(job, slice);
  if (slice.is_split()) split(job, slice, stop);
}

void begin_unit(const PackJob& job, const PackUnit& unit, UnitWriter& writer) {
  std::vector<PieceEntry> pieces;
  pieces.reserve(unit.pieces.size());
  for (const UnitPiece& piece : unit.pieces) pieces.push_back(job.coding_of(unit, piece));
  if (unit.is_expert)
    writer.begin_expert(unit.layer, unit.index, pieces);
  else
    writer.begin_dense(pieces.front());
}

void put_slice(const PackJob& job, const CodedSlice& slice, UnitWriter& writer) {
  if (slice.is_split()) {
    writer.put_split(slice.piece, slice.first, {slice.sm.get(), static_cast<std::size_t>(slice.count)},
                     slice.chunk, slice.chunk_xxh3);
  } else if (slice.is_quantised()) {
    writer.put_quantised(slice.piece, slice.strips.parts());
  } else if (slice.length > 0) {
    const std::uint32_t tensor = job.units[slice.unit].pieces[slice.piece].tensor;
    writer.put_raw(slice.piece, job.weights.tensors[tensor].bytes_of(slice.first), words_of(slice));
  }
}

}  // namespace sluice::store
