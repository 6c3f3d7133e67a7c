// Codec `native`: exponents in tiers of 2, 2 and 3 bits, in tiles (docs/store-format.md, section 4.1). About
// 2.75 bits an exponent where order-0 entropy is 2.62, and decoded without a branch by vectors of any width.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/machine/cpu.h"
#include "base/stop_request.h"
#include "codec/native/tiles.h"

namespace sluice::codec {

// Whole groups of one piece: the range that one chunk covers.
struct GroupRange {
  std::uint64_t groups = 0;
  std::uint64_t blocks = 0;  // in each group
  std::uint64_t places() const { return groups * blocks * kTilePlaces; }
};

// Codes exponents in tile order to a chunk; `shape` tells which of them are padding (whole groups; the last
// may be cut short; padding is 0, as split_tiles() makes it). Every instruction set makes the same bytes.
// Empty if the chunk would not be shorter than the exponents. Error(kInterrupted) if `stop`, asked twice for
// every group, says so.
std::vector<std::byte> encode_native(std::span<const std::byte> exponents, TileShape shape,
                                     Isa isa = best_isa(), const StopRequest& stop = {});

// The most memory that encode_native() takes besides the exponents, its result included.
Bytes native_encode_bytes(TileShape shape);

// A group within a chunk, found and checked except for what its codes say. Non-owning.
struct NativeGroup {
  const std::byte* tiers = nullptr;  // 3 + 3 + 7 exponents
  std::uint64_t blocks = 0;
  const std::byte* tier1 = nullptr;     // 128·blocks bytes, on a multiple of 64 from the chunk's first byte
  const std::byte* tier2 = nullptr;     // codes2 codes
  const std::byte* tier3 = nullptr;     // codes3 codes; codes3 <= codes2 <= 512·blocks
  const std::byte* literals = nullptr;  // at most codes3
  std::uint32_t codes2 = 0, codes3 = 0, literal_count = 0;
  const std::byte* chunk_end = nullptr;  // a line that begins in a list may be read as a whole up to here
};

// A coded chunk, checked once: sizes, order, tables, zeros of padding. Non-owning.
class NativeChunk {
 public:
  // Error(kCorrupt) says what is wrong; the caller adds path and offset. REQUIRES: a range that is not empty.
  NativeChunk(std::span<const std::byte> bytes, GroupRange range);

  NativeGroup group(std::uint64_t index) const;
  GroupRange range() const { return range_; }

 private:
  struct Entry {
    std::uint32_t lists, codes2, codes3, table;
  };
  Entry entry(std::uint64_t index) const;
  std::uint64_t lists_end(std::uint64_t index) const;

  std::span<const std::byte> bytes_;
  GroupRange range_;
  std::uint64_t tier1_begin_ = 0;
};

// Bytes that one thread needs to decode groups of `blocks` blocks.
std::size_t native_scratch_bytes(std::uint64_t blocks);

// How words are stored. kStreaming stores past the caches, which moves a third fewer bytes where the words go
// to memory anyway; it needs rows on cache lines and otherwise falls back to kCached.
enum class Stores { kCached, kStreaming };

// For an instruction set of available_isas(). `scratch` has native_scratch_bytes(). Nothing is read outside
// the chunk's bytes or written outside target and scratch, whatever the chunk says. Returns false if a
// count of the group disagrees with its codes; the target is then unspecified. No pointer needs any
// alignment, but targets on cache lines are faster.
struct NativeKernels {
  // Decodes the exponents of a group in tile order: 512·blocks bytes.
  bool (*decode)(const NativeGroup& group, std::byte* scratch, std::byte* exponents);
  // Decodes the words of a group, row-major: its first `rows` rows (1..8) and first `columns` columns (more
  // than blocks − 1 blocks have, at most all), 2·columns bytes a row. `sign_mantissas`: 512·blocks bytes.
  bool (*merge)(const NativeGroup& group, std::byte* scratch, const std::byte* sign_mantissas,
                std::uint64_t rows, std::uint64_t columns, std::byte* words, Stores stores);
  // As merge(), for exponents that are not coded but stand in tile order, 512·blocks bytes.
  void (*merge_raw)(const std::byte* exponents, const std::byte* sign_mantissas, std::uint64_t blocks,
                    std::uint64_t rows, std::uint64_t columns, std::byte* words, Stores stores);
};
const NativeKernels& native_kernels(Isa isa);

}  // namespace sluice::codec
