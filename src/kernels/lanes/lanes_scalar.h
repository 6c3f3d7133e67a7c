// The sixteen lanes of the order of sums, in plain code.
#pragma once

#include <array>
#include <cstddef>

#include "base/dtype.h"

namespace sluice::kernels {

using Lanes = std::array<float, 16>;

// The tree of matmul.h: l += l+8, l += l+4, l += l+2, l += l+1.
float sum_tree(Lanes lanes);

// Dot of one row of `cols` weights and one packed token, in the order of matmul.h.
float dot_scalar(const std::byte* row, DType dtype, std::size_t cols, const float* packed);

// Element i of an array of BF16, F16, F32 or I8.
float element(const std::byte* data, DType dtype, std::size_t i);

void pack_scalar(const float* x, std::size_t cols, float* packed);

// x[i] becomes exp(x[i] − max x); returns the sum, in 16 lanes by i mod 16, then the tree. `more`: one more
// number that takes part, behind the tree, and is not kept; null: none.
float exp_and_sum_scalar(float* x, std::size_t n, const float* more = nullptr);

}  // namespace sluice::kernels
