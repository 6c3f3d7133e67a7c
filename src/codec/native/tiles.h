// The order in which the planes of a matrix stand in a store of codec `native`: groups of 8 rows, blocks of
// 64 columns (docs/store-format.md, section 4.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/machine/cpu.h"

namespace sluice::codec {

inline constexpr std::size_t kTileRows = 8;
inline constexpr std::size_t kTileColumns = 64;
inline constexpr std::size_t kTilePlaces = kTileRows * kTileColumns;

// A matrix in tiles. A line is 64 places: one row of one block.
struct TileShape {
  std::uint64_t rows = 0, columns = 0;
  constexpr std::uint64_t groups() const { return (rows + kTileRows - 1) / kTileRows; }
  constexpr std::uint64_t blocks() const { return (columns + kTileColumns - 1) / kTileColumns; }
  constexpr std::uint64_t group_places() const { return blocks() * kTilePlaces; }
  constexpr std::uint64_t places() const { return groups() * group_places(); }  // bytes of a plane
  bool operator==(const TileShape&) const = default;
};

// The place of column c of a block in its line, and back. A bijection of 0..63.
constexpr std::size_t place_of_column(std::size_t c) { return 16 * (c % 32 / 8) + 8 * (c / 32) + c % 8; }
constexpr std::size_t column_of_place(std::size_t p) { return 32 * (p % 16 / 8) + 8 * (p / 16) + p % 8; }

// Whole groups of a matrix: `places` places from place `first` on. REQUIRES: multiples of group_places().
struct TileRows {
  std::uint64_t first_row = 0;
  TileShape shape;  // the rows without padding
};
constexpr TileRows tile_rows(TileShape matrix, std::uint64_t first, std::uint64_t places) {
  const std::uint64_t row = first / matrix.group_places() * kTileRows,
                      rows = places / matrix.group_places() * kTileRows;
  return {row, {rows < matrix.rows - row ? rows : matrix.rows - row, matrix.columns}};
}

// The shape in which the elements of a matrix are stored, in the same order: the matrix's own shape, unless
// more than a sixteenth of it would be padding. Then 64, 128 … or 512 columns, whichever takes the fewest
// bytes with padding and directory, if any of these leaves less padding.
TileShape stored_shape(TileShape matrix);

// How many columns of a block, 1 to 64, are not padding.
std::size_t columns_in_block(TileShape shape, std::uint64_t block);

// Splits one row-major matrix, or whole groups of it (the last may be cut short), into planes in tile order.
// `words` is rows·columns BF16 words; `exponents` and `sign_mantissas` have shape.places() bytes each.
// Padding is +0.
void split_tiles(std::span<const std::byte> words, TileShape shape, std::span<std::byte> exponents,
                 std::span<std::byte> sign_mantissas, Isa isa = best_isa());
// Only the sign+mantissa plane.
void sign_mantissa_tiles(std::span<const std::byte> words, TileShape shape,
                         std::span<std::byte> sign_mantissas, Isa isa = best_isa());
// Puts a plane in tile order back into the order of elements; leaves out padding.
void untile(std::span<const std::byte> plane, TileShape shape, std::span<std::byte> elements);

}  // namespace sluice::codec
