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
#include "store/pack/read_in_steps.h"
#include "store/piece_encoding.h"
#include "store/split_memory.h"

namespace sluice::store {
namespace {

std::span<const std::byte> words_of(const CodedSlice& slice) {
  return {slice.words.get(), static_cast<std::size_t>(slice.length)};
}

// Reads a split slice to planes, in the order in which the codec has them.
void load_planes(const PackJob& job, CodedSlice& slice, const InputFile& file, const StopRequest& stop) {
  const auto places = static_cast<std::size_t>(slice.count);
  slice.sm = std::make_unique_for_overwrite<std::byte[]>(places);
  slice.exponents = std::make_unique_for_overwrite<std::byte[]>(places);
  const bool tiled = job.codec == nullptr;
  const std::uint64_t item = tiled ? slice.tiles.group_places() : 1;
  const std::uint64_t step = split_step(item);
  const auto bytes = [](std::uint64_t rows, std::uint64_t columns) {
    return static_cast<std::size_t>(codec::kFormatBf16.bytes({rows, columns}));
  };
  const auto words =
      std::make_unique_for_overwrite<std::byte[]>(bytes(1, std::min<std::uint64_t>(step, slice.count)));
  for (std::uint64_t at = 0; at < slice.count; at += step) {
    const auto count = static_cast<std::size_t>(std::min(step, slice.count - at));
    const std::span<std::byte> e(slice.exponents.get() + at, count), s(slice.sm.get() + at, count);
    const codec::TileRows rows = tiled ? codec::tile_rows(slice.tiles, at, count) : codec::TileRows{};
    const Bytes begin = tiled ? bytes(rows.first_row, rows.shape.columns) : bytes(1, at);
    const std::span<std::byte> read(words.get(),
                                    tiled ? bytes(rows.shape.rows, rows.shape.columns) : bytes(1, count));
    read_in_steps(file, slice.offset + begin, read, stop);
    if (tiled)
      codec::split_tiles(read, rows.shape, e, s, job.options.isa);
    else
      codec::split_bf16(read, e, s, job.options.isa);
  }
}

void code_exponents(const PackJob& job, CodedSlice& slice, const StopRequest& stop) {
  const std::span<const std::byte> exponents(slice.exponents.get(), static_cast<std::size_t>(slice.count));
  if (job.codec != nullptr) {
    slice.chunk = job.codec->encode(exponents, stop);
  } else {
    slice.chunk = {codec::ChunkKind::kCodec,
                   codec::encode_native(exponents, slice.tiles, job.options.isa, stop)};
    if (slice.chunk.bytes.empty())
      slice.chunk = {codec::ChunkKind::kRaw, {exponents.begin(), exponents.end()}};
  }
  slice.exponents.reset();
  slice.chunk.bytes.shrink_to_fit();  // it waits for its turn to be written
  slice.chunk_xxh3 = xxh3(slice.chunk.bytes);
}

void quantise(const PackJob& job, CodedSlice& slice) {
  const PackUnit& unit = job.units[slice.unit];
  const UnitPiece& piece = unit.pieces[slice.piece];
  const TensorInfo& tensor = job.source.weights.tensors[piece.tensor];
  try {
    slice.strips = {*matrix_of(job.manifest, job.coding_of(unit, piece)).format, slice.matrix, tensor.dtype,
                    words_of(slice), piece.first / slice.matrix.columns + slice.first * codec::kStripRows};
  } catch (Error& error) {
    throw error.in(fmt::format("{}, tensor \"{}\", {}",
                               job.source_path(job.source.weights.files[slice.file].relative), tensor.name,
                               error.where()));
  }
  slice.words.reset();
}

}  // namespace

// Split: words of a step, both planes, and what the exponents become, which is never longer. A quantised
// slice: its words and what they become, which is largest as slices of 8 and 4 bits.
Bytes CodedSlice::memory() const {
  if (is_quantised()) return length + codec::kFormatSlices84.bytes({matrix.rows, matrix.columns});
  if (!is_split()) return length;
  const bool tiled = tiles.rows > 0;
  const std::uint64_t step = std::min(count, split_step(tiled ? tiles.group_places() : 1));
  const Bytes coded = tiled ? codec::native_encode_bytes(tiles) : count;
  const Bytes plane = codec::kFormatSplit.plane_bytes({1, count}, 0);  // either of them
  return codec::kFormatBf16.bytes({1, step}) + plane + plane + coded;
}

void load_slice(const PackJob& job, CodedSlice& slice, const InputFile& file, const StopRequest& stop) {
  if (slice.is_split()) return load_planes(job, slice, file, stop);
  const auto length = static_cast<std::size_t>(slice.length);
  slice.words = std::make_unique_for_overwrite<std::byte[]>(length);
  read_in_steps(file, slice.offset, {slice.words.get(), length}, stop);
}

void code_slice(const PackJob& job, CodedSlice& slice, const StopRequest& stop) {
  if (slice.is_quantised()) quantise(job, slice);
  if (slice.is_split()) code_exponents(job, slice, stop);
}

void begin_unit(const PackJob& job, const PackUnit& unit, UnitWriter& writer) {
  std::vector<UnitWriter::Planned> pieces;
  pieces.reserve(unit.pieces.size());
  for (const UnitPiece& piece : unit.pieces) pieces.push_back({job.coding_of(unit, piece), piece.ranges()});
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
  } else if (slice.encoding == Encoding::kFormat) {
    const TensorRange& range = job.units[slice.unit].pieces[slice.piece].ranges()[slice.plane];
    writer.put_plane(slice.piece, slice.plane, job.source.weights.tensors[range.tensor].bytes_of(slice.first),
                     words_of(slice));
  } else if (slice.length > 0) {
    const std::uint32_t tensor = job.units[slice.unit].pieces[slice.piece].tensor;
    writer.put_raw(slice.piece, job.source.weights.tensors[tensor].bytes_of(slice.first), words_of(slice));
  }
}

}  // namespace sluice::store
