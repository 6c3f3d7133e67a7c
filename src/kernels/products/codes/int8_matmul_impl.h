// Products of activations with dense matrices in codes of 8 bits (docs/store-format.md, section 4.3),
// computed from the codes: half the bytes of BF16 come from memory, and at most 128 columns of 16 rows are
// dequantised at a time, into the L1 cache. Activations stay fp32, or are coded where the context says so:
// activation_codes.h has the order of sums and the error of coded ones.
//
// ORDER OF SUMS with activations in fp32. For one output element, columns are taken in groups of 128, the
// last one padded with zeros.
//   chains   k = 0 … 3 of a group adds x·code of columns k, k+4, k+8 …, by fused multiply-add from +0
//   group    sum = (chain 0 + chain 1) + (chain 2 + chain 3)
//   row      total = fma(scale, sum, total), groups ascending, from +0; then the bias is added
// Every instruction set, number of tokens and number of threads follows this order, so the same inputs give
// the same bits everywhere; only the payload of a NaN may differ.
//
// ERROR. A product passes at most 32 + 2 roundings in its group, one for each group from its own on, and the
// bias: y is within (36 + groups)·2^-24 of the exact sum, relative to Σ |w|·|x| + |bias|.
//
// Activations are those of matmul.h, rounded where the context's products round, and coded after that where
// the context says so. Bytes moved: the matrix once, plus activations once per 16 rows.
//
// Plain structs, for files compiled with other flags.
#pragma once

#include <cstddef>

#include "kernels/products/product_args.h"

namespace sluice::kernels {

// Where arranged activations have column `column` (matmul.h).
constexpr std::size_t arranged_place(std::size_t column) {
  return column / 32 * 32 + column % 2 * 16 + column % 32 / 2;
}

struct Int8Kernels {
  RowsKernel rows;
};

}  // namespace sluice::kernels
