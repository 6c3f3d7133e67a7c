// Sums rows with one weight each, ascending, by fused multiply-adds: matmul_transposed, and values in
// attention.
#pragma once

#include "kernels/lanes/vec-inl.h"

namespace sluice::kernels {
namespace {

// Rows are taken in blocks that stay in L2 while the columns pass by; sums wait in `out` between blocks.
inline constexpr std::size_t kSumRowBlock = 256;

// out[t*out_stride + c] += Σ_p weights[t*weight_stride + p] · row p [c], for 16·C columns.
template <class Row, int C, int T>
[[gnu::noinline]] void sum_tile(const std::byte* rows, std::size_t row_bytes, std::size_t count,
                                const float* weights, std::size_t weight_stride, float* out,
                                std::size_t out_stride) {
  Vec acc[T][C];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) acc[t][c] = load(out + t * out_stride + 16 * c);
  }
  const std::size_t ahead_bytes = kAheadBytes / (16 * C * Row::kBytes) * row_bytes;
  for (std::size_t p = 0; p < count; ++p) {
    const std::byte* row = rows + p * row_bytes;
    Vec value[C];
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) {
      __builtin_prefetch(row + ahead_bytes + 16 * c * Row::kBytes, 0, 3);
      value[c] = Row::in_order(row + 16 * c * Row::kBytes);
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const Vec weight = set1(weights[t * weight_stride + p]);
#pragma GCC unroll 16
      for (int c = 0; c < C; ++c) acc[t][c] = fma(weight, value[c], acc[t][c]);
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int c = 0; c < C; ++c) store(out + t * out_stride + 16 * c, acc[t][c]);
  }
}

// The last n < 16 columns of one token.
template <class Row>
inline void sum_last_columns(const std::byte* rows, std::size_t row_bytes, std::size_t count, std::size_t n,
                             const float* weights, float* out) {
  Vec acc = load_first(out, n, 0.0f);
  for (std::size_t p = 0; p < count; ++p) {
    const HalfBlock<Row> last(rows + p * row_bytes, n);
    acc = fma(set1(weights[p]), Row::in_order(last.bytes), acc);
  }
  store_first(out, n, acc);
}

// sum_tile for `tokens` ≤ T tokens.
template <class Row, int C, int T>
inline void sum_tokens(std::size_t tokens, const std::byte* rows, std::size_t row_bytes, std::size_t count,
                       const float* weights, std::size_t weight_stride, float* out, std::size_t out_stride) {
  if constexpr (T > 1) {
    if (tokens < T) {
      return sum_tokens<Row, C, T - 1>(tokens, rows, row_bytes, count, weights, weight_stride, out,
                                       out_stride);
    }
  }
  sum_tile<Row, C, T>(rows, row_bytes, count, weights, weight_stride, out, out_stride);
}

// out[t*out_stride + c] += Σ_p weights[t*weight_stride + p] · row p [c], p ascending, for any counts.
template <class Row>
void weighted_sum(const std::byte* rows, std::size_t row_bytes, std::size_t count, std::size_t cols,
                  const float* weights, std::size_t weight_stride, std::size_t tokens, float* out,
                  std::size_t out_stride) {
  constexpr int kTokensAtOnce = 4;
  for (std::size_t first = 0; first < count; first += kSumRowBlock) {
    const std::size_t n = count - first < kSumRowBlock ? count - first : kSumRowBlock;
    const std::byte* block = rows + first * row_bytes;
    const float* w = weights + first;
    std::size_t c = 0;
    if (tokens == 1) {
      for (; c + 16 * kSumVecsAlone <= cols; c += 16 * kSumVecsAlone) {
        sum_tile<Row, kSumVecsAlone, 1>(block + c * Row::kBytes, row_bytes, n, w, weight_stride, out + c,
                                        out_stride);
      }
    }
    for (; c + 16 * kSumVecs <= cols; c += 16 * kSumVecs) {
      for (std::size_t t = 0; t < tokens; t += kTokensAtOnce) {
        sum_tokens<Row, kSumVecs, kTokensAtOnce>(tokens - t, block + c * Row::kBytes, row_bytes, n,
                                                 w + t * weight_stride, weight_stride,
                                                 out + t * out_stride + c, out_stride);
      }
    }
    for (; c < cols; c += 16) {
      for (std::size_t t = 0; t < tokens; ++t) {
        const std::byte* column = block + c * Row::kBytes;
        const float* w_t = w + t * weight_stride;
        float* out_t = out + t * out_stride + c;
        if (cols - c < 16) {
          sum_last_columns<Row>(column, row_bytes, n, cols - c, w_t, out_t);
        } else {
          sum_tile<Row, 1, 1>(column, row_bytes, n, w_t, weight_stride, out_t, out_stride);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
