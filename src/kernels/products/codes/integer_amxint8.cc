// Intel's matrix unit (AMX-INT8), for prompts. A cell of 32 columns with one byte per code is already a B
// tile: 8 rows of quads of 16 weights. The codes of up to 16 tokens are the A tile, in place: each token's 32
// bytes of a group are a row. TDPBSUD multiplies signed codes of tokens with unsigned codes of weights, and
// leaves a row of 16 sums for each token.
//
// The compiler does not know that tile instructions read memory: barrier() keeps stores before the loads of
// tiles.
#include "kernels/kernel_table.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/codes/integer_line_avx512vnni-inl.h"

// Must follow the include of the lanes.
#include "kernels/products/codes/integer-inl.h"

namespace sluice::kernels {
namespace {

constexpr std::size_t kTileTokens = 16;
// With fewer tokens most of the unit would be idle. (Not measured: where vectors become slower.)
constexpr std::size_t kLeastTokens = 5;

[[gnu::always_inline]] inline void barrier() { __asm__ volatile("" ::: "memory"); }

// The memory that LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// Tile 0: sums, 1: codes of tokens, 2: codes of weights.
void shape_tiles(std::size_t tokens) {
  TileShapes shapes;
  shapes.rows[0] = shapes.rows[1] = static_cast<std::uint8_t>(tokens);
  shapes.rows[2] = 2 * kPairs;
  shapes.row_bytes[0] = shapes.row_bytes[2] = kLineBytes;
  shapes.row_bytes[1] = kCellColumns;
  load_tile_shapes(shapes);
}

// Multiplies a tile of up to kTileTokens tokens, for which the unit's tiles are shaped.
void multiply_tile(const CodedTile& d) {
  alignas(64) std::byte sums[kTileTokens * kLineBytes];
  for (std::size_t g = 0; g < d.groups; ++g) {
    barrier();
    _tile_zero(0);
    _tile_loadd(1, d.x + kCellColumns * g, d.x_stride * sizeof(float));
    _tile_loadd(2, d.block->codes + kCellBytes * g, kLineBytes);
    _tile_dpbsud(0, 1, 2);
    _tile_stored(0, sums, kLineBytes);
    barrier();
    const Vec scale = load(d.block->scales + kStripRows * g);
    const Vec zero_points = load(d.block->zero_points + kStripRows * g);
    for (std::size_t t = 0; t < d.tokens; ++t) {
      float* const total = d.totals + kStripRows * t;
      store(total,
            add_group(scale, zero_points, load_line(sums + kLineBytes * t), d.x_scales[t * d.x_stride + g],
                      d.x_minus_sums[t * d.x_stride + g], load(total)));
    }
  }
}

struct MatrixTiles {
  template <unsigned kPlanes, unsigned kShift>
  static void multiply(const CodedTile& all) {
    static_assert(kPlanes == 1);
    if (all.tokens < kLeastTokens) return VectorTiles::multiply<kPlanes, kShift>(all);
    const std::size_t whole = all.tokens / kTileTokens * kTileTokens;
    if (whole != 0) shape_tiles(kTileTokens);
    for (std::size_t t = 0; t < whole; t += kTileTokens) multiply_tile(from_token(all, t, kTileTokens));
    if (whole == all.tokens) return _tile_release();
    shape_tiles(all.tokens - whole);
    multiply_tile(from_token(all, whole, all.tokens - whole));
    _tile_release();
  }
};

}  // namespace

const IntegerKernels kIntegerAmxInt8 = integer_kernels<MatrixTiles>();

}  // namespace sluice::kernels
