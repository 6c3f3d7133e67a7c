// Intel's matrix unit (AMX-BF16). Tiles 0 to 3 hold sums, 4 and 5 weights, 6 and 7 activations.
//
// The compiler does not know that tile instructions read memory: barrier() keeps stores before the loads of
// tiles.
#include "codec/native/native_codes_avx512vbmi2-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/round_avx512-inl.h"
#include "kernels/products/packed/packed_lines_avx512-inl.h"
#include "kernels/products/packed/tile_impl.h"

namespace sluice::kernels {
namespace {

constexpr std::size_t kTileTokens = 16;
constexpr std::size_t kTileBytes = 16 * 64;  // for an A or B tile

[[gnu::always_inline]] inline void barrier() { __asm__ volatile("" ::: "memory"); }

// The memory that LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

void begin(std::size_t tokens) {
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) {
    const bool weights = i == 4 || i == 5;
    shapes.rows[i] = 16;
    shapes.row_bytes[i] = static_cast<std::uint16_t>(weights ? 64 : 4 * tokens);
  }
  load_tile_shapes(shapes);
}
void end() { _tile_release(); }

// Transposes 16 rows of 16 dwords.
[[gnu::always_inline]] inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4i + j], quarter q: rows 4i to 4i + 3 of column 4q + j.
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88),
                  b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88),
                  d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

void interleave(const std::byte* rows, std::size_t row_bytes, std::size_t tokens, std::size_t steps,
                std::byte* tiles) {
  for (std::size_t s = 0; s < steps; ++s) {
    __m512i r[16];
    for (std::size_t t = 0; t < 16; ++t)
      r[t] = t < tokens ? _mm512_loadu_si512(rows + t * row_bytes + 64 * s) : _mm512_setzero_si512();
    transpose(r);
    for (std::size_t k = 0; k < 16; ++k) _mm512_storeu_si512(tiles + s * kTileBytes + 64 * k, r[k]);
  }
}

// Stores the sums of a tile, which are 16 rows of weights of 64 bytes, as rows of tokens.
[[gnu::always_inline]] inline void store_tokens(const float* sums, std::size_t tokens, float* out,
                                                std::size_t out_stride) {
  __m512i r[16];
  for (std::size_t i = 0; i < 16; ++i) r[i] = _mm512_load_si512(sums + 16 * i);
  transpose(r);
  for (std::size_t t = 0; t < tokens; ++t) _mm512_storeu_si512(out + t * out_stride, r[t]);
}

template <int kRowTiles, int kTokenTiles>
[[gnu::always_inline]] inline void steps(const TileArgs& a) {
  _tile_zero(0);
  if constexpr (kTokenTiles > 1) _tile_zero(1);
  if constexpr (kRowTiles > 1) _tile_zero(2);
  if constexpr (kRowTiles > 1 && kTokenTiles > 1) _tile_zero(3);
  const std::byte *rows = a.rows, *more_rows = a.rows + kTileWeights * a.row_bytes;
  const std::size_t b0 = a.activations[0].row_bytes, b1 = a.activations[1].row_bytes;
  const std::byte *tokens = a.activations[0].tiles, *more_tokens = a.activations[1].tiles;
  for (std::size_t s = 0; s < a.steps; ++s) {
    for (std::size_t r = 0; r < a.ahead_rows; ++r)
      __builtin_prefetch(a.ahead + 64 * s + r * a.row_bytes, 0, 2);
    _tile_loadd(4, rows, a.row_bytes);
    _tile_loadd(6, tokens, b0);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTokenTiles > 1) {
      _tile_loadd(7, more_tokens, b1);
      _tile_dpbf16ps(1, 4, 7);
      more_tokens += 16 * b1;
    }
    if constexpr (kRowTiles > 1) {
      _tile_loadd(5, more_rows, a.row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kTokenTiles > 1) _tile_dpbf16ps(3, 5, 7);
      more_rows += 64;
    }
    rows += 64;
    tokens += 16 * b0;
  }
}

void multiply(const TileArgs& a) {
  barrier();
  if (a.row_tiles == 1 && a.token_tiles == 1) steps<1, 1>(a);
  if (a.row_tiles == 1 && a.token_tiles == 2) steps<1, 2>(a);
  if (a.row_tiles == 2 && a.token_tiles == 1) steps<2, 1>(a);
  if (a.row_tiles == 2 && a.token_tiles == 2) steps<2, 2>(a);
  alignas(64) float sums[4][16 * 16];
  _tile_stored(0, sums[0], 64);
  if (a.token_tiles > 1) _tile_stored(1, sums[1], 64);
  if (a.row_tiles > 1) _tile_stored(2, sums[2], 64);
  if (a.row_tiles > 1 && a.token_tiles > 1) _tile_stored(3, sums[3], 64);
  barrier();
  float* out = a.out;
  for (std::size_t tile = 0; tile < a.token_tiles; ++tile) {
    for (std::size_t i = 0; i < a.row_tiles; ++i)
      store_tokens(sums[2 * i + tile], a.activations[tile].tokens, out + i * kTileWeights, a.out_stride);
    out += a.activations[tile].tokens * a.out_stride;
  }
}

// A block of 64 columns is two steps; these are their A tiles.
struct alignas(64) BlockTiles {
  std::byte steps[2][kTileBytes];
};

// Stores lines of words as rows of such tiles.
struct ToTiles {
  BlockTiles* blocks;
  std::uint64_t mask;  // block b is blocks[b & mask]
  std::size_t first_row;
  template <int kRow>
  [[gnu::always_inline]] void operator()(std::uint64_t block, codec::TileRow<kRow>, __m512i low,
                                         __m512i high) const {
    BlockTiles& tiles = blocks[block & mask];
    _mm512_store_si512(tiles.steps[0] + 64 * (first_row + kRow), low);
    _mm512_store_si512(tiles.steps[1] + 64 * (first_row + kRow), high);
  }
};

[[gnu::always_inline]] inline void multiply_block(const BlockTiles& weights, const Activations& activations,
                                                  std::uint64_t block) {
  const std::size_t row_bytes = activations.row_bytes;
  const std::byte* const tokens = activations.tiles + 2 * 16 * row_bytes * block;
  barrier();
  _tile_loadd(4, weights.steps[0], 64);
  _tile_loadd(6, tokens, row_bytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(5, weights.steps[1], 64);
  _tile_loadd(7, tokens + 16 * row_bytes, row_bytes);
  _tile_dpbf16ps(0, 5, 7);
  barrier();
}

// Takes both groups in turn: a block stays in the L1 cache until the next one is decoded, and is multiplied
// then.
bool multiply_in_turns(const TileGroupArgs& a) {
  BlockTiles blocks[2];
  const ToTiles upper{blocks, 1, 0}, lower{blocks, 1, kTileRows};
  codec::Lines<codec::Form::kRotated> first(a.groups[0].group, a.groups[0].scratch),
      second(a.groups[1].group, a.groups[1].scratch);
  if (!first.started() || !second.started()) return false;
  const WordLines<NextGroup, ToTiles> first_words(a.groups[0], upper), second_words(a.groups[1], lower);
  const std::uint64_t count = a.groups[0].blocks;
  for (std::uint64_t block = 0; block < count; ++block) {
    first.block(block, first_words);
    if (block > 0) multiply_block(blocks[(block - 1) & 1], a.activations, block - 1);
    second.block(block, second_words);
  }
  multiply_block(blocks[(count - 1) & 1], a.activations, count - 1);
  return first.ended_well() && second.ended_well();
}

// Decodes the words of all blocks first.
bool multiply_in_order(const TileGroupArgs& a) {
  auto* const blocks = reinterpret_cast<BlockTiles*>(a.words);
  bool good = true;
  for (std::size_t i = 0; i < a.count; ++i)
    good =
        for_each_word_line<NextGroup>(a.groups[i], ToTiles{blocks, ~std::uint64_t{0}, i * kTileRows}) && good;
  for (std::uint64_t block = 0; block < a.groups[0].blocks; ++block)
    multiply_block(blocks[block], a.activations, block);
  return good;
}

bool multiply_groups(const TileGroupArgs& a) {
  _tile_zero(0);
  const bool in_turns = a.count == 2 && a.groups[0].coded && a.groups[1].coded;
  const bool good = in_turns ? multiply_in_turns(a) : multiply_in_order(a);
  alignas(64) float sums[16 * 16];
  _tile_stored(0, sums, 64);
  barrier();
  for (std::size_t t = 0; t < a.activations.tokens; ++t) {
    for (std::size_t r = 0; r < kTileWeights; ++r) a.out[t * kTileWeights + r] = sums[16 * r + t];
  }
  return good;
}

}  // namespace

// B tiles of a block of tokens fill a quarter of a 2 MiB L2 (half: 10 % slower).
constinit const TileKernels kTilesAmx = {.tile_tokens = kTileTokens,
                                         .group_tokens = kTileTokens,
                                         .groups = 2,
                                         .ahead_tokens = 2 * kTileTokens + 1,
                                         .ahead_rows = 1,
                                         .block_bytes = std::size_t{1} << 19,
                                         .round = round,
                                         .interleave = interleave,
                                         .begin = begin,
                                         .end = end,
                                         .multiply = multiply,
                                         .multiply_groups = multiply_groups,
                                         .words = nullptr};

}  // namespace sluice::kernels
