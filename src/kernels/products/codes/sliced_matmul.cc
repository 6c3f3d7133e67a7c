#include "kernels/products/codes/sliced_matmul.h"

#include <algorithm>
#include <cmath>

#include "base/machine/thread_pool.h"
#include "codec/slices/slice_cells.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/codes/sliced_matmul_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;

// Arranges one token. Tails are zeros.
void arrange_token(const float* x, std::size_t columns, float* arranged) {
  const std::size_t groups = (columns + kCellColumns - 1) / kCellColumns;
  for (std::size_t g = 0; g < groups; ++g) {
    float tail[kCellColumns] = {};
    const float* group = x + g * kCellColumns;
    if (columns - g * kCellColumns < kCellColumns) {
      std::copy(group, x + columns, tail);
      group = tail;
    }
    float sums[4] = {};
    for (std::size_t i = 0; i < kCellColumns; i += 4) {
      const std::size_t c = i / 8 * 4 + i / 4 % 2 * 16;
      for (std::size_t k = 0; k < 4; ++k) {
        const float value = std::fabs(group[c + k]) < kSlicedLeast ? 0.0f : group[c + k];
        arranged[g * kCellColumns + c + k] = value * kSlicedFactors[k];
        sums[k] += value;
      }
    }
    arranged[groups * kCellColumns + g] = -((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

}  // namespace

void arrange_for_slices(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                        std::size_t x_stride, float* arranged) {
  static_assert(activation_code_floats(1) <= sliced_floats(1));
  if (ctx.activations == ActivationForm::kInt8)
    return code_activations(ctx, x, tokens, columns, x_stride, arranged, sliced_floats(columns));
  split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t)
      arrange_token(x + t * x_stride, columns, arranged + t * sliced_floats(columns));
  });
}

}  // namespace sluice::kernels
