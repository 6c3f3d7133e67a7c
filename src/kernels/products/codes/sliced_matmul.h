// Products of activations with matrices of family `sliced`, computed from their codes (docs/store-format.md,
// section 4.2): nothing is dequantised into memory, and the LSB slice is read only where it is asked for.
// Activations stay fp32, or are coded where the context says so: activation_codes.h has the order of sums and
// the error of coded ones.
//
// ORDER OF SUMS with activations in fp32. For one output element, columns are taken in groups of 32, the last
// one padded with zeros. With q the codes of the view (kHigh: MSB·2^S + LSB, else MSB), n columns of the
// group and f = 1 (kHigh) or 2^S:
//   chains   k = 0 … 3 of a group adds x·q of columns k, k+16, k+4, k+20, k+8, k+24, k+12, k+28 (as lines of
//            codes of 4 bits have them), by fused multiply-add from +0
//   group    sum = (chain 0 + chain 1) + (chain 2 + chain 3)
//   zero     sum = fma(−z, Σx, sum), where z is the zero point (kHigh), ⌊zero/2^S⌋ (kLow) or
//            (zero − (2^S − 1)/2)/2^S (kCenter), and Σx the activations of the group, added like a group
//   row      total = fma(scale, sum, total), groups ascending, from +0
//   y        f·total, plus the bias
// Every instruction set, number of tokens and number of threads follows this order, so the same inputs give
// the same bits everywhere; only the payload of a NaN may differ. Activations below 2^-100 in magnitude count
// as 0, so that kernels may multiply with codes in place in their word, and x by that power of two less. With
// codes of 8 bits chain 3 is held 2^-24 times as large, which shows only in sums that leave the range of
// floats.
//
// ERROR. A product passes at most 8 + 2 roundings in its group, one for the zero point, one for each group
// from its own on, and the bias. So y is within (12 + groups)·2^-24 of the exact sum, relative to
// Σ |scale|·f·(q + |z|)·|x|. (q and z are taken apart, where Σ |w|·|x| has |q − z|: with z in the middle of
// the codes that is a few times as much, and 2^-24 of it far below what was lost when codes were made.)
//
// A NaN among the activations of a token makes all its outputs NaN, an infinity makes them infinite or NaN.
#pragma once

#include <cstddef>

#include "kernels/context.h"

namespace sluice::kernels {

// Activations in the form that products with slices read, the same for all contexts with equal
// ctx.activations: per token the columns of whole groups, each times 2^-8k in column k mod 4, then −Σx of the
// groups. Coded activations are as in activation_codes.h; the rest of the row is untouched. Nothing is
// rounded, whatever ctx.products says. Any alignment is legal.
constexpr std::size_t sliced_floats(std::size_t columns) { return (columns + 31) / 32 * 33; }
// x (tokens, columns), row t at x + t*x_stride  →  arranged (tokens, sliced_floats(columns)).
void arrange_for_slices(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                        std::size_t x_stride, float* arranged);

}  // namespace sluice::kernels
