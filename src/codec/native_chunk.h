// Codec `native`: exponents in tiers of 2, 2 and 3 bits, in tiles (docs/store-format.md, section 4.1). About
// 2.75 bits an exponent where order-0 entropy is 2.62, and decoded without a branch by vectors of any width.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "codec/tiles.h"

namespace sluice::codec {

// Whole groups of one piece: what one chunk covers.
struct GroupRange {
  std::uint64_t groups = 0;
  std::uint64_t blocks = 0;  // of each group
  std::uint64_t places() const { return groups * blocks * kTilePlaces; }
};

// One row-major matrix, or whole groups of it (the last may be cut short), to planes in tile order. `words`
// is rows·columns BF16 words; `exponents` and `sign_mantissas` have shape.places() bytes each. Padding is +0.
void split_tiles(std::span<const std::byte> words, TileShape shape, std::span<std::byte> exponents,
                 std::span<std::byte> sign_mantissas);

// Exponents in tile order, and which of them are padding by `shape` (whole groups; the last may be cut
// short), to a chunk. Empty if it would not be shorter than the exponents. Deterministic.
std::vector<std::byte> encode_native(std::span<const std::byte> exponents, TileShape shape);

// A chunk's parts, found and checked once: sizes, order, zeros of padding. Counts within lists are checked as
// they are decoded. Non-owning.
class NativeChunk {
 public:
  // Error(kCorrupt) says what is wrong; the caller adds path and offset.
  NativeChunk(std::span<const std::byte> bytes, GroupRange range);

  struct Group {
    const std::byte* tier1 = nullptr;  // 128·blocks bytes, on a multiple of 64 from the chunk's first byte
    std::span<const std::byte> tier2, tier3, literals;
    std::uint32_t n2 = 0, n3 = 0;
  };
  Group group(std::uint64_t index) const;
  GroupRange range() const { return range_; }
  std::span<const std::byte, 13> tiers() const { return bytes_.first<13>(); }

 private:
  std::span<const std::byte> bytes_;
  GroupRange range_;
};

// Working memory of one thread that decodes groups of `blocks` blocks: exponents of tiers 2 and 3, and what
// vectors may read and write beyond them.
std::size_t native_scratch_bytes(std::uint64_t blocks);

// For an instruction set of available_isas(). `scratch` has native_scratch_bytes(); nothing is read outside
// the chunk's bytes, or written outside the target and the scratch, whatever the chunk says. False if a count
// of the group is not what its codes say; the target is then unspecified.
struct NativeKernels {
  // Exponents of group `index` in tile order: 512·blocks bytes.
  bool (*decode)(const NativeChunk& chunk, std::uint64_t index, std::byte* scratch, std::byte* exponents);
  // Its words, row-major: the first `rows` rows (1..8) and the first `columns` columns, to words + 2·columns
  // a row. `sign_mantissas`: the group's 512·blocks bytes of the other plane.
  bool (*merge)(const NativeChunk& chunk, std::uint64_t index, std::byte* scratch,
                const std::byte* sign_mantissas, std::uint64_t rows, std::uint64_t columns,
                std::byte* words);
  // The same where exponents are not coded but stand in tile order.
  void (*merge_raw)(const std::byte* exponents, const std::byte* sign_mantissas, std::uint64_t blocks,
                    std::uint64_t rows, std::uint64_t columns, std::byte* words);
};
const NativeKernels& native_kernels(Isa isa);

}  // namespace sluice::codec
