// Products with blocks of codes in the order of sums of words/matmul.h, over the lanes of an instruction set.
// Numbers are made in registers, so the bits are those of the product with the fp32 words of the matrix.
#pragma once

#include <utility>

#include "kernels/lanes/dot-inl.h"
#include "kernels/products/blocks/block_codes-inl.h"
#include "kernels/products/blocks/block_products_impl.h"

namespace sluice::kernels {
namespace {

// The blocks of one row from a column on.
template <class Format>
struct BlockRow {
  static constexpr unsigned kHalves = Format::kColumns / 32;
  const std::byte *blocks, *others;  // in both planes
  BlockRow(const ProductArgs& a, std::size_t row, std::size_t column)
      : blocks(a.planes[0] + (row * a.columns + column) / Format::kColumns * Format::kBytes),
        others(nullptr) {
    if constexpr (Format::kOtherBytes != 0)
      others = a.planes[1] + (row * a.columns + column) / Format::kColumns * Format::kOtherBytes;
  }
  [[gnu::always_inline]] Format block(std::size_t i) const {
    if constexpr (Format::kOtherBytes != 0)
      return Format(blocks + i * Format::kBytes, others + i * Format::kOtherBytes);
    else
      return Format(blocks + i * Format::kBytes, nullptr);
  }
  // Prefetches a block.
  [[gnu::always_inline]] void ask_ahead(std::size_t i) const {
#pragma GCC unroll 8
    for (std::size_t line = 0; line < Format::kBytes; line += 64)
      __builtin_prefetch(blocks + i * Format::kBytes + line, 0, 3);
  }
};

// Ends the sums of a row: an odd half block is followed by one of zeros, which makes +0 of −0.
[[gnu::always_inline]] inline float row_sum(const ProductArgs& a, std::size_t row, Vec sums) {
  if (a.columns % 64 != 0) sums = fma(zero(), zero(), sums);
  const float sum = sum_tree(sums);
  return a.bias == nullptr ? sum : sum + a.bias[row];
}

// Some rows from `row` on with one token: codes go from memory into registers and are dropped, while those of
// the rows after the next are prefetched.
template <class Format, int... kRow>
[[gnu::noinline]] void one_token(const ProductArgs& a, std::size_t row, std::integer_sequence<int, kRow...>) {
  constexpr int R = sizeof...(kRow);
  const BlockRow<Format> first(a, row, 0);
  const std::size_t blocks = a.columns / Format::kColumns;
  const float* x = a.x;
  Vec sums[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sums[r] = zero();
  for (std::size_t b = 0; b < blocks; ++b) {
    const Format block[R] = {first.block(b + kRow * blocks)...};
    (first.ask_ahead(b + (kRow + 2 * R) * blocks), ...);
#pragma GCC unroll 8
    for (unsigned h = 0; h < BlockRow<Format>::kHalves; ++h, x += 32) {
      const Vec even = load(x), odd = load(x + 16);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Columns w = block[r].columns(h);
        sums[r] = fma(w.odd, odd, fma(w.even, even, sums[r]));
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) a.y[row + r] = row_sum(a, row + r, sums[r]);
}

// With several tokens, numbers of this many rows and columns lie in the L1 cache while the tokens pass by.
inline constexpr std::size_t kTileRows = 16, kTileColumns = 512;
// This many tokens at once, whose sums of these rows stay in L2.
inline constexpr std::size_t kTileTokens = 48;

struct alignas(64) BlockTile {
  float numbers[kTileRows][kTileColumns];  // in the order of arranged activations
  float sums[kTileTokens][kTileRows][16];
};

// Words as BlockTile has them.
struct Arranged {
  static constexpr std::size_t kBytes = 4;
  static Vec even(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
  static Vec odd(const std::byte* p) { return load(reinterpret_cast<const float*>(p) + 16); }
};

template <class Format>
[[gnu::noinline]] void decode_row(const BlockRow<Format>& row, std::size_t blocks, float* numbers) {
  for (std::size_t b = 0; b < blocks; ++b) {
    const Format block = row.block(b);
#pragma GCC unroll 8
    for (unsigned h = 0; h < BlockRow<Format>::kHalves; ++h, numbers += 32) {
      const Columns w = block.columns(h);
      store(numbers, w.even);
      store(numbers + 16, w.odd);
    }
  }
}

// R rows of the tile from `row` on and T tokens from `token` on; x: of the first of them.
template <int R, int T>
[[gnu::noinline]] void add_tile(BlockTile& tile, std::size_t row, std::size_t token, std::size_t columns,
                                const float* x, std::size_t x_stride) {
  Vec acc[R][T];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) acc[r][t] = load(tile.sums[token + t][row + r]);
  }
  const auto* w = reinterpret_cast<const std::byte*>(tile.numbers[row]);
  for (std::size_t c = 0; c < columns; c += 32, x += 32, w += 32 * sizeof(float))
    dot_half<Arranged, R, T>(w, sizeof(tile.numbers[0]), x, x_stride, acc);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) store(tile.sums[token + t][row + r], acc[r][t]);
  }
}

// The same for `tokens` ≤ T tokens.
template <int R, int T>
inline void add_tokens(std::size_t tokens, BlockTile& tile, std::size_t row, std::size_t token,
                       std::size_t columns, const float* x, std::size_t x_stride) {
  if constexpr (T > 1) {
    if (tokens < T) return add_tokens<R, T - 1>(tokens, tile, row, token, columns, x, x_stride);
  }
  add_tile<R, T>(tile, row, token, columns, x, x_stride);
}

// Adds the tile's columns, which x has for the first of `tokens` tokens.
inline void add_columns(BlockTile& tile, std::size_t rows, std::size_t tokens, std::size_t columns,
                        const float* x, std::size_t x_stride) {
  const std::size_t tiles = (tokens + kBlockTileTokens - 1) / kBlockTileTokens;
  std::size_t t = 0;
  for (std::size_t i = 0; i < tiles; ++i) {  // sizes differ by one at most
    const std::size_t n = (tokens - t + (tiles - i) - 1) / (tiles - i);
    std::size_t r = 0;
    for (; r + kBlockTileRows <= rows; r += kBlockTileRows)
      add_tokens<kBlockTileRows, kBlockTileTokens>(n, tile, r, t, columns, x + t * x_stride, x_stride);
    for (; r < rows; ++r) add_tokens<1, kBlockTileTokens>(n, tile, r, t, columns, x + t * x_stride, x_stride);
    t += n;
  }
}

// At most kTileRows rows from `row` on and kTileTokens tokens from `token` on.
template <class Format>
inline void some_tokens(const ProductArgs& a, std::size_t row, std::size_t rows, std::size_t token,
                        std::size_t tokens, BlockTile& tile) {
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r) store(tile.sums[t][r], zero());
  }
  for (std::size_t c = 0; c < a.columns; c += kTileColumns) {
    const std::size_t columns = a.columns - c < kTileColumns ? a.columns - c : kTileColumns;
    for (std::size_t r = 0; r < rows; ++r)
      decode_row(BlockRow<Format>(a, row + r, c), columns / Format::kColumns, tile.numbers[r]);
    add_columns(tile, rows, tokens, columns, a.x + token * a.x_stride + c, a.x_stride);
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r)
      a.y[(token + t) * a.y_stride + row + r] = row_sum(a, row + r, load(tile.sums[t][r]));
  }
}

template <class Format>
void block_rows(const ProductArgs& a, std::size_t begin, std::size_t end) {
  static_assert(kTileColumns % Format::kColumns == 0);
  if (a.tokens == 1) {
    std::size_t row = begin;
    for (; row + kBlockRows <= end; row += kBlockRows)
      one_token<Format>(a, row, std::make_integer_sequence<int, kBlockRows>());
    for (; row < end; ++row) one_token<Format>(a, row, std::make_integer_sequence<int, 1>());
    return;
  }
  BlockTile tile;
  for (std::size_t t = 0; t < a.tokens; t += kTileTokens) {
    const std::size_t tokens = a.tokens - t < kTileTokens ? a.tokens - t : kTileTokens;
    for (std::size_t row = begin; row < end; row += kTileRows)
      some_tokens<Format>(a, row, end - row < kTileRows ? end - row : kTileRows, t, tokens, tile);
  }
}

constexpr BlockKernels kBlocks = {
    block_rows<Q40>,   block_rows<Q41>,   block_rows<Q50>,   block_rows<Q51>,      block_rows<Q80>,
    block_rows<Q2K>,   block_rows<Q3K>,   block_rows<Q4K>,   block_rows<Q5K>,      block_rows<Q6K>,
    block_rows<Iq4Nl>, block_rows<Iq4Xs>, block_rows<Mxfp4>, block_rows<Mxfp4Pair>};

}  // namespace
}  // namespace sluice::kernels
