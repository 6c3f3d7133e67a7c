// What each instruction set implements for sliced_matmul.h. Plain structs, for files compiled with other
// flags.
#pragma once

#include <cstddef>

#include "kernels/products/product_args.h"

namespace sluice::kernels {

// Scales of x for column c of a group: 2^-(bits that the code is shifted in its word). The kernels' masks are
// at these bits.
inline constexpr float kSlicedFactors[4] = {0x1p0f, 0x1p-8f, 0x1p-16f, 0x1p-24f};
inline constexpr float kSlicedLeast = 0x1p-100f;  // smaller activations count as 0
// With codes of 8 bits, the code of column 3 mod 4 would cover the sign of its word: it is shifted down
// instead, and its chain is 2^-24 times as large.
inline constexpr unsigned kWideBits = 8;
inline constexpr float kWideFactor = 0x1p24f;

// One for each of codec::kStoredSliceBits, in their order.
struct SlicedKernels {
  RowsKernel of_bits[3];
};
static_assert(codec::kStoredSliceBits.size() == 3);

}  // namespace sluice::kernels
