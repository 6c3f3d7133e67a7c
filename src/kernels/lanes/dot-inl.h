// Dot products of R rows with T packed token rows in registers, in the order of matmul.h.
#pragma once

#include "kernels/lanes/vec-inl.h"

namespace sluice::kernels {
namespace {

constexpr std::size_t packed_floats_of(std::size_t cols) { return (cols + 63) / 64 * 64; }

// Packs one token's activations in the order of the sums.
inline void pack(const float* x, std::size_t cols, float* packed) {
  std::size_t c = 0;
  for (; c + 32 <= cols; c += 32) {
    store(packed + c, even_lanes(load(x + c), load(x + c + 16)));
    store(packed + c + 16, odd_lanes(load(x + c), load(x + c + 16)));
  }
  for (; c < packed_floats_of(cols); c += 32) {
    for (std::size_t l = 0; l < 16; ++l) {
      packed[c + l] = c + 2 * l < cols ? x[c + 2 * l] : 0.0f;
      packed[c + 16 + l] = c + 2 * l + 1 < cols ? x[c + 2 * l + 1] : 0.0f;
    }
  }
}

// One half block: 32 columns of R rows at w + r*row_bytes, 32 packed floats of T tokens at x + t*x_stride.
template <class Row, int R, int T>
[[gnu::always_inline]] inline void dot_half(const std::byte* w, std::size_t row_bytes, const float* x,
                                            std::size_t x_stride, Vec (&acc)[R][T]) {
  Vec weight[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) weight[r] = Row::even(w + r * row_bytes);
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    const Vec activation = load(x + t * x_stride);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r][t] = fma(weight[r], activation, acc[r][t]);
  }
  // Even and odd columns share the load of a row; without the barrier the compiler keeps it in R more
  // registers, which the full tile does not have.
  if constexpr (R * T > 12) asm volatile("" ::: "memory");
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) weight[r] = Row::odd(w + r * row_bytes);
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    const Vec activation = load(x + t * x_stride + 16);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r][t] = fma(weight[r], activation, acc[r][t]);
  }
}

// The work of one tile: all columns at once, or up to a multiple of 32 and the rest in later calls.
struct DotTile {
  const std::byte* rows;  // column 0 of the first row
  std::size_t row_bytes;  // from one row to the next
  std::size_t cols;
  const float* x;  // column 0 of the first token, packed
  std::size_t x_stride;
  // How far to prefetch, counted from the current line of each row; 0: not at all.
  std::size_t ahead_bytes;
  std::size_t begin, end;  // columns of this call
  float* state;            // R·T·16 floats between calls; not used when begin == 0 and end == cols
  float* out;              // out[t*out_stride + r] = dot of row r and token t, when end == cols
  std::size_t out_stride;
};

template <class Row, int R, int T>
[[gnu::noinline]] void dot_tile(const DotTile& d) {
  Vec acc[R][T];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) acc[r][t] = d.begin == 0 ? zero() : load(d.state + 16 * (r * T + t));
  }
  const std::size_t row_bytes = d.row_bytes, x_stride = d.x_stride, ahead_bytes = d.ahead_bytes;
  const std::byte* w = d.rows + d.begin * Row::kBytes;
  const float* x = d.x + d.begin;
  const std::size_t full = d.end / 32;
  for (std::size_t h = d.begin / 32; h < full; ++h) {
    if (ahead_bytes != 0) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) __builtin_prefetch(w + r * row_bytes + ahead_bytes, 0, 2);
    }
    dot_half<Row, R, T>(w, row_bytes, x, x_stride, acc);
    w += 32 * Row::kBytes;
    x += 32;
  }
  if (d.end < d.cols) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) store(d.state + 16 * (r * T + t), acc[r][t]);
    }
    return;
  }
  // The half with the last columns, and the half of zeros behind it.
  for (std::size_t h = full; h < packed_floats_of(d.cols) / 32; ++h) {
    const std::size_t n = 32 * h < d.cols ? d.cols - 32 * h : 0;
    std::byte tail[R * 32 * Row::kBytes];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const HalfBlock<Row> block(w + r * row_bytes, n);
      __builtin_memcpy(tail + r * 32 * Row::kBytes, block.bytes, sizeof(block.bytes));
    }
    dot_half<Row, R, T>(tail, 32 * Row::kBytes, x, x_stride, acc);
    x += 32;
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    float* out = d.out + t * d.out_stride;
    int r = 0;
    if constexpr (R >= 4) {
#pragma GCC unroll 16
      for (; r + 4 <= R; r += 4) sum_tree4(acc[r][t], acc[r + 1][t], acc[r + 2][t], acc[r + 3][t], out + r);
    }
#pragma GCC unroll 16
    for (; r < R; ++r) out[r] = sum_tree(acc[r][t]);
  }
}

// Computes the tile of R rows and `tokens` ≤ T tokens.
template <class Row, int R, int T>
inline void dot_tokens(std::size_t tokens, const DotTile& d) {
  if constexpr (T > 1) {
    if (tokens < T) return dot_tokens<Row, R, T - 1>(tokens, d);
  }
  dot_tile<Row, R, T>(d);
}

}  // namespace
}  // namespace sluice::kernels
