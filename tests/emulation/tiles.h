// AMX: TILE, BF16, INT8. A thread's eight tiles; an operation that raises an exception on a CPU ends the
// program.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "emulation/bf16.h"

namespace sluice::emulation {

// Rows and bytes beyond the tile's shape are 0: loads clear them, products do not write them.
struct Tile {
  std::size_t rows = 0, row_bytes = 0;
  unsigned char bytes[16][64] = {};
};
struct TileUnit {
  bool configured = false;
  Tile tiles[8];
};
// Shared by all files that are compiled with the emulation; each thread has 8 tiles of 1 KiB, as each core of
// the machine has.
inline thread_local TileUnit tile_unit;

namespace {

[[noreturn]] inline void tile_fault(const char* what) {
  std::fprintf(stderr, "emulated AMX: %s\n", what);
  std::abort();
}
inline void require_tile(bool good, const char* what) {
  if (!good) tile_fault(what);
}
inline Tile& tile(int number) {
  require_tile(tile_unit.configured, "a tile is used and none is configured (#UD)");
  require_tile(number >= 0 && number < 8, "there are 8 tiles (#UD)");
  Tile& t = tile_unit.tiles[number];
  require_tile(t.rows != 0, "the tile is not configured (#UD)");
  return t;
}
template <class T>
inline T lane(const unsigned char* row, std::size_t i) {
  T value;
  __builtin_memcpy(&value, row + i * sizeof(T), sizeof(T));
  return value;
}

inline void _tile_release() { tile_unit = TileUnit{}; }

// 64 bytes: palette, start row, 14 zeros, 16 row lengths in bytes (16 bits), 16 numbers of rows.
inline void _tile_loadconfig(const void* config) {
  const auto* const bytes = static_cast<const unsigned char*>(config);
  _tile_release();
  if (bytes[0] == 0) return;
  require_tile(bytes[0] == 1, "the palette is 0 or 1 (#GP)");
  require_tile(bytes[1] == 0, "only loads from row 0 are emulated");
  for (int i = 2; i < 16; ++i) require_tile(bytes[i] == 0, "reserved bytes are 0 (#GP)");
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t row_bytes = lane<std::uint16_t>(bytes + 16, i), rows = bytes[48 + i];
    require_tile(i < 8 || (row_bytes == 0 && rows == 0), "there are 8 tiles (#GP)");
    require_tile(row_bytes <= 64 && rows <= 16, "a tile has 16 rows of 64 bytes at most (#GP)");
    require_tile((row_bytes == 0) == (rows == 0), "a tile has rows and bytes in them, or neither (#GP)");
    if (i < 8) {
      tile_unit.tiles[i].rows = rows;
      tile_unit.tiles[i].row_bytes = row_bytes;
    }
  }
  tile_unit.configured = true;
}

inline void _tile_zero(int number) { __builtin_memset(tile(number).bytes, 0, sizeof(Tile::bytes)); }

inline void _tile_loadd(int number, const void* from, std::size_t stride) {
  Tile& t = tile(number);
  _tile_zero(number);
  for (std::size_t r = 0; r < t.rows; ++r)
    __builtin_memcpy(t.bytes[r], static_cast<const char*>(from) + r * stride, t.row_bytes);
}
inline void _tile_stored(int number, void* to, std::size_t stride) {
  const Tile& t = tile(number);
  for (std::size_t r = 0; r < t.rows; ++r)
    __builtin_memcpy(static_cast<char*>(to) + r * stride, t.bytes[r], t.row_bytes);
}

// The requirements of every product of two tiles.
inline void require_product(int sums, int a, int b) {
  require_tile(sums != a && sums != b && a != b, "the three tiles differ (#UD)");
  require_tile(tile(sums).row_bytes % 4 == 0 && tile(a).row_bytes % 4 == 0 && tile(b).row_bytes % 4 == 0,
               "rows are of whole dwords (#UD)");
  require_tile(tile(sums).rows == tile(a).rows, "there are as many rows of sums as of the first tile (#UD)");
  require_tile(tile(sums).row_bytes == tile(b).row_bytes,
               "there are as many columns of sums as of the second tile (#UD)");
  require_tile(tile(a).row_bytes / 4 == tile(b).rows,
               "the first tile has as many dwords in a row as the second has rows (#UD)");
}

// For each sum two chains, of even and of odd words, ascending, each from +0; the chains are added, then
// added to the sum.
inline void _tile_dpbf16ps(int sums, int a, int b) {
  require_product(sums, a, b);
  Tile& to = tile(sums);
  const Tile &x = tile(a), &y = tile(b);
  // (Computes all 16 columns: absent ones are not written.)
  for (std::size_t m = 0; m < to.rows; ++m) {
    Floats even{}, odd{};
    for (std::size_t k = 0; k < x.row_bytes / 4; ++k) {
      const std::uint32_t pair = lane<std::uint32_t>(x.bytes[m], k);
      Pairs same, row;
      for (std::uint32_t& p : same.at) p = pair;
      __builtin_memcpy(&row, y.bytes[k], sizeof(row));
      even = flushed_fma(even_words(same), even_words(row), even);
      odd = flushed_fma(odd_words(same), odd_words(row), odd);
    }
    for (std::size_t n = 0; n < to.row_bytes / 4; ++n) {
      const float both = flushed(even.at[n] + odd.at[n]);
      const float sum = flushed(flushed(lane<float>(to.bytes[m], n)) + both);
      __builtin_memcpy(to.bytes[m] + 4 * n, &sum, sizeof(sum));
    }
  }
}

// Adds four products of bytes of types A and B to each sum, which wraps.
template <class A, class B>
inline void tile_byte_products(int sums, int a, int b) {
  require_product(sums, a, b);
  Tile& to = tile(sums);
  const Tile &x = tile(a), &y = tile(b);
  for (std::size_t m = 0; m < to.rows; ++m) {
    for (std::size_t n = 0; n < to.row_bytes / 4; ++n) {
      std::uint32_t sum = lane<std::uint32_t>(to.bytes[m], n);
      for (std::size_t k = 0; k < x.row_bytes / 4; ++k) {
        for (std::size_t j = 0; j < 4; ++j)
          sum += static_cast<std::uint32_t>(int{lane<A>(x.bytes[m], 4 * k + j)} *
                                            int{lane<B>(y.bytes[k], 4 * n + j)});
      }
      __builtin_memcpy(to.bytes[m] + 4 * n, &sum, sizeof(sum));
    }
  }
}
// First letter s or u: whether the first tile's bytes are signed; the second letter likewise for the second
// tile.
inline void _tile_dpbssd(int sums, int a, int b) { tile_byte_products<std::int8_t, std::int8_t>(sums, a, b); }
inline void _tile_dpbsud(int sums, int a, int b) {
  tile_byte_products<std::int8_t, std::uint8_t>(sums, a, b);
}
inline void _tile_dpbusd(int sums, int a, int b) {
  tile_byte_products<std::uint8_t, std::int8_t>(sums, a, b);
}
inline void _tile_dpbuud(int sums, int a, int b) {
  tile_byte_products<std::uint8_t, std::uint8_t>(sums, a, b);
}

}  // namespace
}  // namespace sluice::emulation
