// kEmulatedTiles or kRealTiles, as in cases-inl.h.
#pragma once

#include "base/machine/avx512_intrinsics.h"
#include "emulation/cases.h"

namespace sluice::emulation {
namespace {

struct alignas(64) Shapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

template <class F>
inline void with_tiles(TileOperands& o, const F& product) {
  Shapes shapes;
  const unsigned rows[] = {o.rows, o.rows, o.depth}, columns[] = {o.columns, o.depth, o.columns};
  for (int i = 0; i < 3; ++i) {
    shapes.rows[i] = static_cast<std::uint8_t>(rows[i]);
    shapes.row_bytes[i] = static_cast<std::uint16_t>(4 * columns[i]);
  }
  load_tile_shapes(shapes);
  // The compiler does not know that tile instructions read memory.
  __asm__ volatile("" ::: "memory");
  _tile_loadd(0, o.sums, 64);
  _tile_loadd(1, o.x, 64);
  _tile_loadd(2, o.y, 64);
  product();
  _tile_stored(0, o.sums, 64);
  __asm__ volatile("" ::: "memory");
  _tile_release();
}

const TileCase kTileCases[] = {
    {"dpbf16ps", Equal::kNumbers, [](TileOperands& o) { with_tiles(o, [] { _tile_dpbf16ps(0, 1, 2); }); }},
    {"dpbssd", Equal::kBits, [](TileOperands& o) { with_tiles(o, [] { _tile_dpbssd(0, 1, 2); }); }},
    {"dpbsud", Equal::kBits, [](TileOperands& o) { with_tiles(o, [] { _tile_dpbsud(0, 1, 2); }); }},
    {"dpbusd", Equal::kBits, [](TileOperands& o) { with_tiles(o, [] { _tile_dpbusd(0, 1, 2); }); }},
    {"dpbuud", Equal::kBits, [](TileOperands& o) { with_tiles(o, [] { _tile_dpbuud(0, 1, 2); }); }},
    {"zero", Equal::kBits, [](TileOperands& o) { with_tiles(o, [] { _tile_zero(0); }); }},
};

}  // namespace
}  // namespace sluice::emulation
