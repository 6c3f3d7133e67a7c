// Matrix products of fp32 activations with checkpoint weights, in one fixed order of sums.
//
// ORDER OF SUMS. For one output element, columns are taken in blocks of 64 (the last one padded with zeros).
// A block is two halves of 32 columns; lane l of 16 adds column 32h+2l and then column 32h+2l+1 of each half,
// by fused multiply-add, blocks and halves ascending. The 16 lanes are then summed as a tree: lane l takes
// lane l+8, then l+4, l+2, l+1; the bias is added last. Every instruction set, every number of tokens and
// every number of threads follows this order, so the same inputs give the same bits everywhere. (A pair of
// neighbouring columns per lane is what the BF16 dot instructions and a 64-column tiled layout can
// reproduce.) Zero padding adds +0 products: x is padded with +0, weights with +0. This
// holds for infinities and subnormal numbers, too; where a result is a NaN, its payload may differ.
//
// products.h has the product. Bytes moved: the weights once per block of tokens whose arranged activations
// fill half of L2 (1 MiB: 128 tokens of 2048 columns), plus activations. One thread does small products
// alone.
#pragma once

#include <cstddef>

#include "kernels/context.h"

namespace sluice::kernels {

// Activations in the order that products read: per token ceil(columns/64) blocks of 64 floats; each half of a
// block holds its 16 even columns, then its 16 odd columns; the tail is +0. Where the context's products
// round, the first half of the row has the BF16 words of the columns instead. Any alignment is legal; with
// many tokens, 64 bytes is a third faster than 16.
constexpr std::size_t arranged_floats(std::size_t columns) { return (columns + 63) / 64 * 64; }
// x (tokens, columns), row t at x + t*x_stride  →  arranged (tokens, arranged_floats(columns)).
void arrange_activations(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                         std::size_t x_stride, float* arranged);

}  // namespace sluice::kernels
