#include "kernels/elementwise/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "kernels/elementwise/elementwise_impl.h"
#include "kernels/kernel_table.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

constexpr std::size_t kGrain = 1024;  // numbers: gives whole cache lines to each thread

}  // namespace

void rms_norm(const Context& ctx, const float* x, std::size_t rows, std::size_t cols, std::size_t x_stride,
              std::span<const float> w, float eps, float* y, std::size_t y_stride) {
  SLUICE_CHECK(w.size() == cols, fmt::format("{} weights, {} columns", w.size(), cols));
  const auto norm = kernel_table(ctx.isa).elementwise->rms_norm_row;
  split(ctx, rows, 1, rows * cols, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) norm(x + r * x_stride, cols, w.data(), eps, y + r * y_stride);
  });
}

void silu_mul(const Context& ctx, const float* gate, const float* up, std::size_t n, float* out) {
  const auto silu = kernel_table(ctx.isa).elementwise->silu_mul;
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    silu(gate + begin, up + begin, end - begin, out + begin);
  });
}

void clamped_mul(const Context& ctx, ClampedGate gating, const float* gate, const float* up, std::size_t n,
                 float* out) {
  const auto mul = kernel_table(ctx.isa).elementwise->clamped_mul;
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    mul(gating.limit, gating.alpha, gate + begin, up + begin, end - begin, out + begin);
  });
}

void clamped_mul_pairs(const Context& ctx, ClampedGate gating, const float* pairs, std::size_t n,
                       float* out) {
  const auto mul = kernel_table(ctx.isa).elementwise->clamped_mul_pairs;
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    mul(gating.limit, gating.alpha, pairs + 2 * begin, end - begin, out + begin);
  });
}

void relu(const Context& ctx, std::size_t n, float* x) {
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) x[i] = x[i] < 0.0f ? 0.0f : x[i];
  });
}

void add(const Context& ctx, const float* x, std::size_t n, float* accumulator) {
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) accumulator[i] += x[i];
  });
}

void add_scaled(const Context& ctx, const float* x, float scale, std::size_t n, float* accumulator) {
  const auto add = kernel_table(ctx.isa).elementwise->add_scaled;
  split(ctx, n, kGrain, n,
        [&](std::size_t begin, std::size_t end) { add(x + begin, scale, end - begin, accumulator + begin); });
}

void scale(const Context& ctx, float factor, std::size_t n, float* x) {
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

void clamp(const Context& ctx, float limit, std::size_t n, float* x) {
  split(ctx, n, kGrain, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float v = x[i] > limit ? limit : x[i];  // NaN stays
      x[i] = v < -limit ? -limit : v;
    }
  });
}

float sigmoid(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

void softmax_rows(const Context& ctx, float* x, std::size_t rows, std::size_t cols) {
  if (cols == 0) return;
  const auto softmax = kernel_table(ctx.isa).elementwise->softmax_row;
  split(ctx, rows, 1, rows * cols, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) softmax(x + r * cols, cols);
  });
}

// The largest of blocks first, so that a compiler takes several numbers at a time; then where it is.
std::size_t argmax(const float* x, std::size_t n) {
  SLUICE_CHECK(n >= 1);
  constexpr std::size_t kLanes = 32;
  const auto larger = [](float a, float b) { return a > b ? a : b; };  // b where a is NaN
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = larger(x[i + lane], lanes[lane]);
  float best = -std::numeric_limits<float>::infinity();
  for (; i < n; ++i) best = larger(x[i], best);
  for (const float lane : lanes) best = larger(lane, best);
  const float* const found = std::find(x, x + n, best);
  return found == x + n ? 0 : static_cast<std::size_t>(found - x);
}

}  // namespace sluice::kernels
