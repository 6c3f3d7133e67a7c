// elementwise.h over the Vec of an instruction set.
#pragma once

#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/lanes/exp-inl.h"

namespace sluice::kernels {
namespace {

// Calls f(i, load, store) for every 16 numbers; the last few are copied.
template <class F>
inline void for_lanes(std::size_t n, const F& f) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    f(
        i, [](const float* p) { return load(p); }, [](float* p, Vec v) { store(p, v); });
  }
  if (i < n) {
    f(
        i, [&](const float* p) { return load_first(p, n - i, 0.0f); },
        [&](float* p, Vec v) { store_first(p, n - i, v); });
  }
}

inline void rms_norm_row(const float* x, std::size_t cols, const float* w, float eps, float* y) {
  Vec squares = zero();
  for_lanes(cols, [&](std::size_t i, auto get, auto) {
    const Vec v = get(x + i);
    squares = fma(v, v, squares);
  });
  const float mean = sum_tree(squares) / static_cast<float>(cols);
  const Vec factor = set1(1.0f / __builtin_sqrtf(mean + eps));
  for_lanes(cols,
            [&](std::size_t i, auto get, auto put) { put(y + i, mul(mul(get(x + i), factor), get(w + i))); });
}

inline void silu_mul_range(const float* gate, const float* up, std::size_t n, float* out) {
  for_lanes(n, [&](std::size_t i, auto get, auto put) {
    const Vec g = get(gate + i);
    const Vec silu = div(g, add(set1(1.0f), exp(sub(zero(), g))));
    put(out + i, mul(silu, get(up + i)));
  });
}

inline Vec clamped_product(float limit, float alpha, Vec gate, Vec up) {
  const Vec most = set1(limit), g = min(most, gate), u = max(set1(-limit), min(most, up));
  const Vec gated = div(g, add(set1(1.0f), exp(sub(zero(), mul(set1(alpha), g)))));
  return mul(add(u, set1(1.0f)), gated);
}

inline void clamped_mul_range(float limit, float alpha, const float* gate, const float* up, std::size_t n,
                              float* out) {
  for_lanes(n, [&](std::size_t i, auto get, auto put) {
    put(out + i, clamped_product(limit, alpha, get(gate + i), get(up + i)));
  });
}

inline void clamped_mul_pairs_range(float limit, float alpha, const float* pairs, std::size_t n, float* out) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Vec low = load(pairs + 2 * i), high = load(pairs + 2 * i + 16);
    store(out + i, clamped_product(limit, alpha, even_lanes(low, high), odd_lanes(low, high)));
  }
  if (i == n) return;
  float rest[32] = {};
  __builtin_memcpy(rest, pairs + 2 * i, 2 * (n - i) * sizeof(float));
  const Vec low = load(rest), high = load(rest + 16);
  store_first(out + i, n - i, clamped_product(limit, alpha, even_lanes(low, high), odd_lanes(low, high)));
}

inline void add_scaled_range(const float* x, float scale, std::size_t n, float* accumulator) {
  for_lanes(n, [&](std::size_t i, auto get, auto put) {
    put(accumulator + i, fma(set1(scale), get(x + i), get(accumulator + i)));
  });
}

inline void softmax_row(float* x, std::size_t n) {
  const Vec sum = set1(exp_and_sum(x, n));
  for_lanes(n, [&](std::size_t i, auto get, auto put) { put(x + i, div(get(x + i), sum)); });
}

inline void exp_range(const float* x, std::size_t n, float* out) {
  for_lanes(n, [&](std::size_t i, auto get, auto put) { put(out + i, exp(get(x + i))); });
}

}  // namespace
}  // namespace sluice::kernels
