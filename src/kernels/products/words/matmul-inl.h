// matmul.h over the Vec of an instruction set.
#pragma once

#include "kernels/elementwise/weighted_sum-inl.h"
#include "kernels/lanes/dot-inl.h"
#include "kernels/products/words/matmul_impl.h"

namespace sluice::kernels {
namespace {

// Packed activations of one block of tokens fill about half of a 2 MiB L2. Longer prompts pass over the
// weights once per block; by then a weight takes part in a hundred multiplications, so reading it again is
// hidden.
inline constexpr std::size_t kTokenBlockFloats = (std::size_t{1} << 20) / sizeof(float);
inline constexpr std::size_t kTokenBlockLeast = 24;

// With many tokens, the columns are cut so that one tile of activations (kTokens × 512 × 4 bytes = 12 KiB)
// and the pending sums of a panel of rows (12 KiB) stay in an L1 of 32 KiB while the panel passes by. (1024
// columns gave 4 % more with an L1 of 48 KiB, 256 columns 20 % less.)
inline constexpr std::size_t kPanelRows = 32;
inline constexpr std::size_t kColumnBlock = 512;

inline void add_bias(const ProductArgs& a, std::size_t row, std::size_t rows, std::size_t t,
                     std::size_t tokens) {
  if (a.bias == nullptr) return;
  for (std::size_t k = t; k < t + tokens; ++k) {
    for (std::size_t r = row; r < row + rows; ++r) a.y[k * a.y_stride + r] += a.bias[r];
  }
}

inline DotTile tile_at(const ProductArgs& a, std::size_t row, std::size_t t) {
  DotTile d{};
  d.rows = a.planes[0] + row * a.row_bytes;
  d.row_bytes = a.row_bytes;
  d.cols = d.end = a.columns;
  d.x = a.x + t * a.x_stride;
  d.x_stride = a.x_stride;
  d.out = a.y + t * a.y_stride + row;
  d.out_stride = a.y_stride;
  return d;
}

// Groups of at most R rows by T tokens, all columns at once. Returns the first row not taken.
template <class Row, int R, int T>
inline std::size_t groups(const ProductArgs& a, std::size_t row, std::size_t row_end, std::size_t t,
                          std::size_t tokens, std::size_t ahead_bytes) {
  for (; row + R <= row_end; row += R) {
    for (std::size_t i = 0; i < tokens; i += T) {
      DotTile d = tile_at(a, row, t + i);
      d.ahead_bytes = i == 0 ? ahead_bytes : 0;
      dot_tokens<Row, R, T>(tokens - i, d);
    }
    add_bias(a, row, R, t, tokens);
  }
  return row;
}

// Panels of rows by tiles of tokens by blocks of columns.
template <class Row>
inline std::size_t panels(const ProductArgs& a, std::size_t row, std::size_t row_end, std::size_t token_begin,
                          std::size_t token_end) {
  alignas(64) float state[kPanelRows / kRows][kRows * kTokens * 16];
  while (row + kRows <= row_end) {
    const std::size_t left = (row_end - row) / kRows;
    const std::size_t count = left < kPanelRows / kRows ? left : kPanelRows / kRows;
    const std::size_t tiles = (token_end - token_begin + kTokens - 1) / kTokens;
    std::size_t t = token_begin;
    for (std::size_t i = 0; i < tiles; ++i) {  // sizes differ by one at most: no tile of one lonely token
      const std::size_t n = (token_end - t + (tiles - i) - 1) / (tiles - i);
      for (std::size_t c = 0; c < a.columns; c += kColumnBlock) {
        for (std::size_t g = 0; g < count; ++g) {
          DotTile d = tile_at(a, row + g * kRows, t);
          d.begin = c;
          d.end = a.columns - c < kColumnBlock ? a.columns : c + kColumnBlock;
          d.state = state[g];
          d.ahead_bytes = i + 1 == tiles ? count * kRows * a.row_bytes : 0;  // the next panel
          dot_tokens<Row, kRows, kTokens>(n, d);
        }
      }
      t += n;
    }
    add_bias(a, row, count * kRows, token_begin, token_end - token_begin);
    row += count * kRows;
  }
  return row;
}

template <class Row>
void matmul_rows(const ProductArgs& a, std::size_t row_begin, std::size_t row_end) {
  std::size_t block = kTokenBlockFloats / (a.x_stride == 0 ? 1 : a.x_stride);
  if (block < kTokenBlockLeast) block = kTokenBlockLeast;
  for (std::size_t t = 0; t < a.tokens; t += block) {
    const std::size_t tokens = a.tokens - t < block ? a.tokens - t : block;
    std::size_t r = row_begin;
    if (tokens <= kFewTokens) {
      r = groups<Row, kRowsForFew, kFewTokens>(a, r, row_end, t, tokens, a.ahead_bytes);
    } else if (a.columns != 0) {
      r = panels<Row>(a, r, row_end, t, t + tokens);
    }
    r = groups<Row, kRows, kTokens>(a, r, row_end, t, tokens, 0);
    groups<Row, 1, kTokens>(a, r, row_end, t, tokens, 0);
  }
}

template <class Row>
void transposed(const TransposedArgs& a, std::size_t token_begin, std::size_t token_end,
                std::size_t col_begin, std::size_t col_end) {
  weighted_sum<Row>(a.weights + col_begin * Row::kBytes, a.columns * Row::kBytes, a.rows, col_end - col_begin,
                    a.x + token_begin * a.x_stride, a.x_stride, token_end - token_begin,
                    a.y + token_begin * a.y_stride + col_begin, a.y_stride);
}

template <class Row>
constexpr WordKernels word_kernels() {
  return {matmul_rows<Row>, transposed<Row>};
}

}  // namespace
}  // namespace sluice::kernels
