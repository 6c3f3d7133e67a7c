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
#pragma once

#include <cstddef>
#include <span>

#include "codec/slices/int8_matrix.h"
#include "kernels/context.h"

namespace sluice::kernels {

// Non-owning; no alignment is demanded.
struct Int8Weight {
  codec::Int8Shape shape;
  const std::byte* data = nullptr;  // shape.bytes(): codes, then scales
};

// As matmul() of the weights that the matrix stands for. `packed` is the output of pack_activations(),
// rounded where the context's products round (and then coded, where the context says so). Threads split the
// rows. Bytes moved: the matrix once, plus activations once per 16 rows.
void int8_matmul(const Context& ctx, const float* packed, std::size_t tokens, const Int8Weight& w,
                 std::span<const float> bias, float* y, std::size_t y_stride);

}  // namespace sluice::kernels
