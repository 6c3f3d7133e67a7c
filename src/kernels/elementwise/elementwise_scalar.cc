// exp, and the operations with fused multiply-adds or sums in lanes, in plain code.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/exp.h"
#include "kernels/lanes/lanes_scalar.h"

namespace sluice::kernels {
namespace {

// Like the vector instructions: returns the second operand when one is a NaN.
float larger(float a, float b) { return a > b ? a : b; }
float smaller(float a, float b) { return a < b ? a : b; }

// −126 ≤ n ≤ 127 in two's complement.
float pow2(std::uint32_t n) { return std::bit_cast<float>((n + 127u) << 23); }

}  // namespace

float exp_f32(float x) {
  using namespace exp_constants;
  x = larger(kLowest, smaller(kHighest, x));  // a NaN is the second operand, so it stays
  const float t = std::fma(x, kLog2E, kRound);
  const float n = t - kRound;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  float p = kPoly[0];
  for (int i = 1; i < 6; ++i) p = std::fma(p, r, kPoly[i]);
  p = std::fma(p, r * r, r) + 1.0f;
  // Two factors, each a normal number, so that subnormal results are rounded once.
  const std::uint32_t power = std::bit_cast<std::uint32_t>(t) - std::bit_cast<std::uint32_t>(kRound);
  const std::uint32_t half = static_cast<std::uint32_t>(static_cast<std::int32_t>(power) >> 1);
  return p * pow2(half) * pow2(power - half);
}

float exp_and_sum_scalar(float* x, std::size_t n, const float* more) {
  Lanes largest;
  largest.fill(-std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < n; ++i) largest[i % 16] = larger(largest[i % 16], x[i]);
  for (std::size_t i = n; i % 16 != 0; ++i) {
    largest[i % 16] = larger(largest[i % 16], -std::numeric_limits<float>::infinity());
  }
  for (std::size_t step = 8; step > 0; step /= 2) {
    for (std::size_t l = 0; l < step; ++l) largest[l] = larger(largest[l], largest[l + step]);
  }
  const float most = more == nullptr ? largest[0] : larger(largest[0], *more);
  Lanes sum{};
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = exp_f32(x[i] - most);
    sum[i % 16] += x[i];
  }
  const float total = sum_tree(sum);
  return more == nullptr ? total : total + exp_f32(*more - most);
}

namespace {

void rms_norm_row_scalar(const float* x, std::size_t cols, const float* w, float eps, float* y) {
  Lanes squares{};
  for (std::size_t c = 0; c < cols; ++c) squares[c % 16] = std::fma(x[c], x[c], squares[c % 16]);
  const float mean = sum_tree(squares) / static_cast<float>(cols);
  const float factor = 1.0f / std::sqrt(mean + eps);
  for (std::size_t c = 0; c < cols; ++c) y[c] = x[c] * factor * w[c];
}

void silu_mul_scalar(const float* gate, const float* up, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = gate[i] / (1.0f + exp_f32(0.0f - gate[i])) * up[i];
}

float clamped_product(float limit, float alpha, float gate, float up) {
  const float g = smaller(limit, gate), u = larger(-limit, smaller(limit, up));
  return (u + 1.0f) * (g / (1.0f + exp_f32(0.0f - alpha * g)));
}

void clamped_mul_scalar(float limit, float alpha, const float* gate, const float* up, std::size_t n,
                        float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = clamped_product(limit, alpha, gate[i], up[i]);
}

void clamped_mul_pairs_scalar(float limit, float alpha, const float* pairs, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = clamped_product(limit, alpha, pairs[2 * i], pairs[2 * i + 1]);
}

void add_scaled_scalar(const float* x, float scale, std::size_t n, float* accumulator) {
  for (std::size_t i = 0; i < n; ++i) accumulator[i] = std::fma(scale, x[i], accumulator[i]);
}

void softmax_row_scalar(float* x, std::size_t n) {
  const float sum = exp_and_sum_scalar(x, n);
  for (std::size_t i = 0; i < n; ++i) x[i] /= sum;
}

void exp_scalar(const float* x, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = exp_f32(x[i]);
}

}  // namespace

const ElementwiseKernels kElementwiseScalar = {
    rms_norm_row_scalar, silu_mul_scalar,    clamped_mul_scalar, clamped_mul_pairs_scalar,
    add_scaled_scalar,   softmax_row_scalar, exp_scalar};

}  // namespace sluice::kernels
