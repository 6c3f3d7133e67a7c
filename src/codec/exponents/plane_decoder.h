// Rebuilds exponents and words from the two planes of split pieces: one object for every codec that a store
// may have, flat (zstd, lz4) or in tiles (native).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/machine/cpu.h"
#include "codec/exponents/exponent_codec.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"

namespace sluice::codec {

inline constexpr std::string_view kNativeCodec = "native";
// Whether a store's manifest and the setting of the codec may give this name; "none" is one of them.
bool is_codec(std::string_view name);
// What each thread keeps, once it has decoded matrices of at most this many columns.
std::size_t kept_decoding_bytes(std::string_view codec, std::uint64_t columns);

// Thread-safe. `tiles` is the rows of the chunk where pieces are tiled, else {}. Error(kCorrupt) unless
// `stored` is exactly one encoding of the requested exponents; the caller adds path and offset, and the
// target is then unspecified.
class PlaneDecoder {
 public:
  // Error(kUnsupported) for an unknown name.
  PlaneDecoder(std::string_view codec, Isa isa);
  ~PlaneDecoder();

  // Checks as the others do, without output; `exponents` is their number without padding.
  void check(ChunkKind kind, std::span<const std::byte> stored, TileShape tiles,
             std::uint64_t exponents) const;
  // Exponents in the order of the piece's elements.
  void exponents(ChunkKind kind, std::span<const std::byte> stored, TileShape tiles,
                 std::span<std::byte> exponents) const;
  // Words of 2 bytes an element. `sign_mantissas`: the chunk's share of that plane, as stored.
  void words(ChunkKind kind, std::span<const std::byte> stored, std::span<const std::byte> sign_mantissas,
             TileShape tiles, std::span<std::byte> words) const;
  // Words of the groups from `first_group` on, in tiles alone: `some` is their rows, `sign_mantissas` their
  // share of the plane.
  void words_of_groups(ChunkKind kind, std::span<const std::byte> stored,
                       std::span<const std::byte> sign_mantissas, TileShape tiles, std::uint64_t first_group,
                       TileShape some, std::span<std::byte> words) const;
  // The second half of words() for flat chunks; `exponents` may be the upper half of `words`.
  void merge(std::span<const std::byte> exponents, std::span<const std::byte> sign_mantissas,
             std::span<std::byte> words) const;

 private:
  struct Groups {
    std::uint64_t first = 0, count = 0;
  };
  template <class Coded, class Raw>
  void each_group(ChunkKind kind, std::span<const std::byte> stored, TileShape tiles, Groups groups,
                  const Coded& coded, const Raw& raw) const;

  const Isa isa_;
  const NativeKernels& native_;
  std::unique_ptr<const ExponentCodec> flat_;  // null: native
};

}  // namespace sluice::codec
