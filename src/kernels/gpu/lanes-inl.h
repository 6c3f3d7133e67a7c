// The order of sums of this program (products/words/matmul.h), in warps: the sixteen lanes of a sum are
// sixteen neighbouring lanes of a warp, which has two such sums.
#pragma once

#include "kernels/gpu/warp.h"
#include "kernels/lanes/exp.h"

namespace sluice::kernels::gpu {

// The tree of matmul.h in each half of a warp: l += l+8, l += l+4, l += l+2, l += l+1. Every lane of the half
// has the sum: the two numbers of each addition are the same in both lanes that add them.
template <class Warp>
SLUICE_GPU typename Warp::Float sum_tree(const Warp& warp, typename Warp::Float v) {
  v = v + warp.shuffle_xor(v, 8);
  v = v + warp.shuffle_xor(v, 4);
  v = v + warp.shuffle_xor(v, 2);
  return v + warp.shuffle_xor(v, 1);
}

// exp_f32().
template <class Warp>
SLUICE_GPU typename Warp::Float exp(const Warp& warp, typename Warp::Float x) {
  using namespace exp_constants;
  using Float = typename Warp::Float;
  using Word = typename Warp::Word;
  x = warp.max(Float(kLowest), warp.min(Float(kHighest), x));  // a NaN is the second operand, so it stays
  const Float t = warp.fma(x, Float(kLog2E), Float(kRound));
  const Float n = t - Float(kRound);
  const Float r = warp.fma(n, Float(-kLn2Low), warp.fma(n, Float(-kLn2High), x));
  constexpr float kP0 = kPoly[0], kP1 = kPoly[1], kP2 = kPoly[2], kP3 = kPoly[3], kP4 = kPoly[4],
                  kP5 = kPoly[5];  // so that no array is needed on a device
  Float p = Float(kP0);
  p = warp.fma(p, r, Float(kP1));
  p = warp.fma(p, r, Float(kP2));
  p = warp.fma(p, r, Float(kP3));
  p = warp.fma(p, r, Float(kP4));
  p = warp.fma(p, r, Float(kP5));
  p = warp.fma(p, r * r, r) + Float(1.0f);
  // Two powers of two, each a normal number, so that subnormal results are rounded once. The halves of a
  // negative power are rounded down.
  const Word power = warp.bits(t) - warp.bits(Float(kRound));
  const Word half = (power >> Word(1)) | (power & Word(0x80000000u));
  const auto pow2 = [&](Word n) { return warp.number((n + Word(127)) << Word(23)); };
  return p * pow2(half) * pow2(power - half);
}

// 1 / (1 + exp(−x)), as sigmoid() computes it.
template <class Warp>
SLUICE_GPU typename Warp::Float sigmoid(const Warp& warp, typename Warp::Float x) {
  using Float = typename Warp::Float;
  return Float(1.0f) /
         (Float(1.0f) + exp(warp, warp.number(warp.bits(x) ^ typename Warp::Word(0x80000000u))));
}

}  // namespace sluice::kernels::gpu
