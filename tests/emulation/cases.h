// Intrinsics by name, each in up to three implementations that must agree: the emulation; AVX2 for both
// halves, where it has the same operation; the CPU itself. Plain structs, for files compiled with other
// flags.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::emulation {

struct Operands {
  alignas(64) unsigned char a[64], b[64], c[64];
  std::uint64_t k;  // the mask
};
struct Result {
  alignas(64) unsigned char bytes[64];  // 0 beyond the used bytes
};

enum class Equal { kBits, kNumbers };  // kNumbers: lanes of fp32, where all NaNs are equal

struct Case {
  const char* name;  // without _mm512_
  Equal equal;
  void (*run)(const Operands& operands, Result& result);
};

// Products of tiles: x (rows, 4·depth bytes), y (depth, 4·columns bytes), sums (rows, 4·columns bytes).
struct TileOperands {
  unsigned rows, columns, depth;  // 1 to 16
  alignas(64) unsigned char x[16][64], y[16][64], sums[16][64];
};
struct TileCase {
  const char* name;  // without _tile_
  Equal equal;
  void (*run)(TileOperands& operands);  // adds to `sums`
};

struct Cases {
  const Case* first;
  std::size_t count;
};
struct TileCases {
  const TileCase* first;
  std::size_t count;
};

extern const Cases kEmulated, kTwins;
extern const TileCases kEmulatedTiles;
extern const Cases kReal;           // with all emulated parts of AVX-512
extern const TileCases kRealTiles;  // with AMX: TILE, BF16, INT8

}  // namespace sluice::emulation
