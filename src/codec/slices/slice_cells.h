// The order in which quantised matrices stand in a store: strips of 16 rows, cells of a strip and 32 columns,
// lines of 64 bytes (docs/store-format.md, section 4.2). Made for kernels whose vectors have a row in each
// 32-bit lane: four columns of it in its bytes, more of them in the bits of a byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace sluice::codec {

inline constexpr std::size_t kStripRows = 16;
inline constexpr std::size_t kCellColumns = 32;  // codes of b bits take b lines a cell
inline constexpr std::size_t kCellCodes = kStripRows * kCellColumns;
inline constexpr std::size_t kLineBytes = 64;  // codes of b bits take b lines a cell

// Rows and columns of a matrix; the rest of its last strip and of its last cells is padding.
struct CellShape {
  std::uint64_t rows = 0, columns = 0;
  constexpr std::uint64_t strips() const { return (rows + kStripRows - 1) / kStripRows; }
  constexpr std::uint64_t groups() const { return (columns + kCellColumns - 1) / kCellColumns; }
  constexpr std::uint64_t cells() const { return strips() * groups(); }
  // Bytes of all cells, and of one strip, for codes of `bits` bits.
  constexpr Bytes code_bytes(unsigned bits) const { return cells() * kLineBytes * bits; }
  constexpr Bytes strip_bytes(unsigned bits) const { return groups() * kLineBytes * bits; }
  bool operator==(const CellShape&) const = default;
};

// Whole strips of a matrix: `count` of them from strip `first` on, with the rows that are no padding.
constexpr CellShape strip_rows(CellShape matrix, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t row = first * kStripRows, left = matrix.rows - row;
  return {count * kStripRows < left ? count * kStripRows : left, matrix.columns};
}

// Puts the 32 codes of row `row` of a cell, a byte each, into its lines; gets them back. `bits` is 2, 3 or 4
// (8: the codes themselves, signed or not); codes are below 2^bits. Only bytes of that row are touched.
void put_codes(const std::uint8_t* codes, unsigned bits, std::size_t row, std::byte* cell);
void get_codes(const std::byte* cell, unsigned bits, std::size_t row, std::uint8_t* codes);

}  // namespace sluice::codec
