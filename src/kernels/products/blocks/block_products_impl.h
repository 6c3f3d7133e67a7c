// Products with blocks of codes, computed from the blocks: what an instruction set has for each format of
// codec/blocks. Activations are those of words/matmul.h, never rounded, and so is the order of sums: the bits
// are those of the product with the fp32 words of the matrix, which decoded_products.cc makes where a set has
// no such kernels.
//
// Bytes moved: the matrix once for at most 48 tokens, plus activations.
//
// Plain structs, for files compiled with other flags.
#pragma once

#include "kernels/products/product_args.h"

namespace sluice::kernels {

struct BlockKernels {
  RowsKernel q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4, mxfp4_pair;
};

}  // namespace sluice::kernels
