// Matrix products of fp32 activations with checkpoint weights, in one fixed order of sums.
//
// ORDER OF SUMS. For one output element, columns are taken in blocks of 64 (the last one padded with zeros).
// A block is two halves of 32 columns; lane l of 16 adds column 32h+2l and then column 32h+2l+1 of each half,
// by fused multiply-add, blocks and halves ascending. The 16 lanes are then summed as a tree: lane l takes
// lane l+8, then l+4, l+2, l+1; the bias is added last. Every instruction set, every number of tokens and
// every number of threads follows this order, so the same inputs give the same bits everywhere. (A pair of
// neighbouring columns per lane is what the BF16 dot instructions and a 64-column tiled layout can
// reproduce.) Zero padding adds +0 products: x is padded with +0, weights with +0. Infinities and subnormal
// numbers included; only a NaN is just a NaN, with whatever payload.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"
#include "kernels/context.h"

namespace sluice::kernels {

// A weight matrix in memory, row-major, rows contiguous: w[r][c] at data + (r*cols + c)*dtype_bytes. BF16,
// F16 or F32. Non-owning. No alignment is demanded.
struct Weight {
  const std::byte* data = nullptr;
  DType dtype = DType::kBF16;
  std::size_t rows = 0;
  std::size_t cols = 0;
  const std::byte* row(std::size_t r) const { return data + r * cols * dtype_bytes(dtype); }
  Weight rows_from(std::size_t first, std::size_t count) const { return {row(first), dtype, count, cols}; }
};

// Activations in the order that matmul reads: per token ceil(cols/64) blocks of 64 floats; each half of a
// block holds its 16 even columns, then its 16 odd columns; the tail is +0. Any alignment is legal; with many
// tokens, 64 bytes is a third faster than 16.
constexpr std::size_t packed_floats(std::size_t cols) { return (cols + 63) / 64 * 64; }
// x (tokens, cols), row t at x + t*x_stride  →  packed (tokens, packed_floats(cols)).
void pack_activations(const Context& ctx, const float* x, std::size_t tokens, std::size_t cols,
                      std::size_t x_stride, float* packed);

// y[t][r] = Σ_c x[t][c]·w[r][c] (+ bias[r] when bias is not empty). y row t at y + t*y_stride. Threads split
// r. Bytes moved: the weights once per block of tokens whose packed activations fill half of L2 (1 MiB: 128
// tokens of 2048 columns), plus activations. One thread does small products alone.
void matmul(const Context& ctx, const float* packed, std::size_t tokens, const Weight& w,
            std::span<const float> bias, float* y, std::size_t y_stride);

// y[t][c] = Σ_r x[t][r]·w[r][c]: the weights transposed (absorbed MLA). Rows ascending, one fused
// multiply-add each, starting from +0. Threads split c in multiples of 16 columns, or t. x row t at x +
// t*x_stride.
void matmul_transposed(const Context& ctx, const float* x, std::size_t tokens, std::size_t x_stride,
                       const Weight& w, float* y, std::size_t y_stride);

// One row of a weight matrix as fp32 (embedding lookup).
void row_to_float(const Weight& w, std::size_t row, float* out);

}  // namespace sluice::kernels
