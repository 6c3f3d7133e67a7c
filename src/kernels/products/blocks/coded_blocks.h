// Products of activations in codes of 8 bits with weights in blocks of codes (docs/formats.md): what a
// Context with ActivationForm::kInt8 computes of formats in InputForm::kBlocks.
//
// CODES of activations are those of codes/activation_codes.h: groups of 32 columns, with codes c and a scale
// x. What is coded was never rounded before.
//
// ORDER OF SUMS. For one output element, a row of weights is taken in the same groups, and these in halves of
// 16 columns, with whole codes q, whole scales s and whole minima m (1 and 0 where a format has none):
//   S = Σ s·Σ q·c     M = −Σ m·Σ c     inner sums over a half, outer ones over both: exact, below 2^24
//   total[l] = fma(a, x·S, total[l]), and in formats with minima then
//   total[l] = fma(b, x·M, total[l])   from +0, groups ascending, l = group mod 8
// The last groups are made eight by such with x, S, M = 0 and a, b = +0. Then total l takes l+4, l+2, l+1;
// the bias is added last. Every instruction set, number of tokens and number of threads follows this order,
// so the same inputs give the same bits everywhere; only the payload of a NaN may differ.
//
//   format        q                         s, m                   a              b
//   q8_0          the code                                         d
//   q4_0, q5_0    code − 8, code − 16                              d
//   q4_1, q5_1    the code                  m = 1                  d              −(the block's minimum)
//   q2_k          the code                  those of each half     d              dmin
//   q3_k, q6_k    code − 4, code − 32       s of each half         d
//   q4_k, q5_k    the code                  m = 1                  d·(scale)      dmin·(minimum), of the 32
//   iq4_nl        K[code]                                          d
//   iq4_xs        K[code]                                          d·(scale)
//   mxfp4(_pair)  2·F[code]                                        2^(e − 128)
// All a and b are exact in fp32.
//
// ERROR. An activation is off by at most 0.5001/127 of the largest of its group. Besides the effect of that,
// y is off by at most (groups/4 + 6)·2^-24 of Σ |a·x·S| + Σ |b·x·M| and |bias|.
#pragma once

#include <cstddef>

#include "kernels/context.h"

namespace sluice::kernels {

// Floats of one token with G groups, and P = G made a multiple of 8. In order: codes of all columns (a byte
// each, 8·G floats), scales (P), −Σ c (P), −Σ c of both halves (P words of two whole numbers of 16 bits); the
// last P − G are 0. Any alignment. No more than arranged_floats(columns).
constexpr std::size_t block_code_floats(std::size_t columns) {
  const std::size_t groups = (columns + 31) / 32;
  return groups * 8 + (groups + 7) / 8 * 8 * 3;
}

// x (tokens, columns), row t at x + t*x_stride → row t at codes + t*codes_stride. REQUIRES: whole groups.
void code_for_blocks(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                     std::size_t x_stride, float* codes, std::size_t codes_stride);

}  // namespace sluice::kernels
