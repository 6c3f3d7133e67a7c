// exp of 16 lanes, and the softmax sum, computed like exp_f32.
#pragma once

#include "kernels/lanes/exp.h"
#include "kernels/lanes/vec-inl.h"

namespace sluice::kernels {
namespace {

inline Vec exp(Vec x) {
  using namespace exp_constants;
  x = max(set1(kLowest), min(set1(kHighest), x));  // a NaN is the second operand, so it stays
  const Vec t = fma(x, set1(kLog2E), set1(kRound));
  const Vec n = sub(t, set1(kRound));
  const Vec r = fma(n, set1(-kLn2Low), fma(n, set1(-kLn2High), x));
  Vec p = set1(kPoly[0]);
#pragma GCC unroll 8
  for (int i = 1; i < 6; ++i) p = fma(p, r, set1(kPoly[i]));
  p = add(fma(p, mul(r, r), r), set1(1.0f));
  return mul_pow2(p, t, kRound);
}

// x[i] becomes exp(x[i] − max x); returns the sum, in 16 lanes by i mod 16, then the tree. `more`: one more
// number that takes part, behind the tree, and is not kept; null: none.
inline float exp_and_sum(float* x, std::size_t n, const float* more = nullptr) {
  const float lowest = -__builtin_inff();
  Vec largest = set1(lowest);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) largest = max(largest, load(x + i));
  if (i < n) largest = max(largest, load_first(x + i, n - i, lowest));
  float most = max_tree(largest);
  if (more != nullptr) most = most > *more ? most : *more;
  const Vec shift = set1(most);
  Vec sum = zero();
  for (i = 0; i + 16 <= n; i += 16) {
    const Vec e = exp(sub(load(x + i), shift));
    store(x + i, e);
    sum = add(sum, e);
  }
  if (i < n) {
    store_first(x + i, n - i, exp(sub(load_first(x + i, n - i, lowest), shift)));
    sum = add(sum, load_first(x + i, n - i, 0.0f));
  }
  const float total = sum_tree(sum);
  if (more == nullptr) return total;
  float lanes[16];
  store(lanes, exp(sub(set1(*more), shift)));
  return total + lanes[0];
}

}  // namespace
}  // namespace sluice::kernels
