// The product of activations with a stored matrix, whatever its format.
#pragma once

#include <cstddef>
#include <span>

#include "codec/matrix_format.h"
#include "kernels/context.h"

namespace sluice::kernels {

// Floats of activations of one token for the product with `w`, and how they are made: by the format's
// InputForm (input_form.h). `w` must not be empty.
std::size_t activation_floats(const codec::MatrixRef& w);
void arrange_for(const Context& ctx, const codec::MatrixRef& w, const float* x, std::size_t tokens,
                 std::size_t x_stride, float* arranged);

// y[t][r] = Σ_c x[t][c]·w[r][c] (+ bias[r] when bias is not empty), x arranged by arrange_for(). y row t at y
// + t*y_stride. The order of sums is that of the format: words/matmul.h, packed/packed_matmul.h,
// codes/sliced_matmul.h, codes/int8_matmul_impl.h, codes/activation_codes.h; words/matmul.h for formats
// without kernels. Threads split r. Error(kCorrupt) if compressed planes are no valid encoding: y is then
// unspecified.
void matmul(const Context& ctx, const float* x, std::size_t tokens, const codec::MatrixRef& w,
            std::span<const float> bias, float* y, std::size_t y_stride);

// y[t][c] = Σ_r x[t][r]·w[r][c]: the weights transposed (absorbed MLA). Rows ascending, one fused
// multiply-add each, starting from +0. Threads split c in multiples of 16 columns, or t. x row t at x +
// t*x_stride, not arranged. REQUIRES: a matrix of words.
void matmul_transposed(const Context& ctx, const float* x, std::size_t tokens, std::size_t x_stride,
                       const codec::MatrixRef& w, float* y, std::size_t y_stride);

}  // namespace sluice::kernels
