// The small operations between matrix products. All fp32, all with the same bits on every instruction set.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/context.h"

namespace sluice::kernels {

// exp in fp32 by one polynomial with fused multiply-adds, the same on every instruction set; ≤ 2 ulp; 0 below
// −104, inf above 88.73, NaN stays.
float exp_f32(float x);

// y[t] = x[t] · rsqrt(mean(x[t]²) + eps) · w, rows of `cols`; x and y may be the same. 1/sqrt is computed
// exactly as 1.0f / sqrtf(·). Sum of squares in 16 lanes (lane l takes columns l, l+16, …), then the tree of
// matmul.h.
void rms_norm(const Context& ctx, const float* x, std::size_t rows, std::size_t cols, std::size_t x_stride,
              std::span<const float> w, float eps, float* y, std::size_t y_stride);

// out[i] = silu(gate[i]) · up[i], silu(v) = v / (1 + exp(−v)).
void silu_mul(const Context& ctx, const float* gate, const float* up, std::size_t n, float* out);

// gpt-oss's gate: out[i] = (u + 1) · (g / (1 + exp(−alpha·g))) with g = min(gate[i], limit) and u = up[i] cut
// to ±limit; NaN stays. Products and sums are rounded one by one. The second form has gate and up by turns:
// g of pairs[2i] and u of pairs[2i + 1]; `out` must lie apart from `pairs`.
struct ClampedGate {
  float limit = 0.0f, alpha = 0.0f;
};
void clamped_mul(const Context& ctx, ClampedGate gating, const float* gate, const float* up, std::size_t n,
                 float* out);
void clamped_mul_pairs(const Context& ctx, ClampedGate gating, const float* pairs, std::size_t n, float* out);

// x = max(x, 0); NaN stays.
void relu(const Context& ctx, std::size_t n, float* x);

void add(const Context& ctx, const float* x, std::size_t n, float* accumulator);  // acc += x
void add_scaled(const Context& ctx, const float* x, float scale, std::size_t n,
                float* accumulator);  // acc = fma(scale, x, acc)
void scale(const Context& ctx, float factor, std::size_t n, float* x);
void clamp(const Context& ctx, float limit, std::size_t n, float* x);  // to ±limit
float sigmoid(float x);

// Rows of `cols` in place: softmax in fp32 (16 lanes + tree for the sum).
void softmax_rows(const Context& ctx, float* x, std::size_t rows, std::size_t cols);

// Rotates `heads` heads of one token in place; head h at x + h*head_stride; the first 2·half numbers of a
// head are rotated; cos and sin hold `half` numbers for this position.
//   half form:        pairs (i, i+half);  interleaved form: pairs (2i, 2i+1), result left in the half order
//                     (evens then odds), as published DeepSeek-V2 code does for both q and k.
// half ≤ 1024. Products and sums are rounded one by one, as the published code does.
enum class RopeForm { kHalf, kInterleaved };
void rope(RopeForm form, float* x, std::size_t heads, std::size_t head_stride, std::size_t half,
          const float* cos, const float* sin);

// Index of the largest of n ≥ 1 values; ties take the lowest index; NaN never wins unless all are NaN (then
// 0).
std::size_t argmax(const float* x, std::size_t n);

}  // namespace sluice::kernels
