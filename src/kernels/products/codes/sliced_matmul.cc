#include "kernels/products/codes/sliced_matmul.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/codes/sliced_matmul_impl.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kCellColumns;
using codec::kStripRows;
using codec::SliceView;

// Packs one token. Tails are zeros.
void pack_token(const float* x, std::size_t columns, float* packed) {
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
        packed[g * kCellColumns + c + k] = value * kSlicedFactors[k];
        sums[k] += value;
      }
    }
    packed[groups * kCellColumns + g] = -((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

void check(const codec::SlicedView& w, SliceView which) {
  const codec::SliceBits bits = w.shape.bits;
  SLUICE_CHECK(std::ranges::find(codec::kStoredSliceBits, bits) != codec::kStoredSliceBits.end(),
               codec::slice_bits_text(bits));
  SLUICE_CHECK(w.shape.cells() == 0 || (w.msb != nullptr && w.scales != nullptr && w.zeros != nullptr),
               "no MSB slice");
  SLUICE_CHECK(which != SliceView::kHigh || w.shape.cells() == 0 || w.lsb != nullptr, "no LSB slice");
}

SlicedArgs args_of(const float* packed, std::size_t tokens, const codec::SlicedView& w, SliceView which,
                   std::span<const float> bias, float* y, std::size_t y_stride) {
  SlicedArgs args{};
  args.packed = packed;
  args.packed_stride = sliced_floats(w.shape.columns);
  args.tokens = tokens;
  args.which = which;
  args.bits = w.shape.bits;
  args.msb = w.msb;
  args.lsb = which == SliceView::kHigh ? w.lsb : nullptr;
  args.scales = w.scales;
  args.zeros = w.zeros;
  args.factor = which == SliceView::kHigh ? 1.0f : static_cast<float>(1u << args.bits.shift());
  args.rows = w.shape.rows;
  args.groups = w.shape.groups();
  args.bias = bias.empty() ? nullptr : bias.data();
  args.y = y;
  args.y_stride = y_stride;
  return args;
}

auto strips_of(const Context& ctx) {
  const KernelTable& table = kernel_table(ctx.isa);
  return ctx.activations == ActivationForm::kInt8 ? table.integer->slices : table.sliced->strips;
}

}  // namespace

void pack_for_slices(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                     std::size_t x_stride, float* packed) {
  static_assert(activation_code_floats(1) <= sliced_floats(1));
  if (ctx.activations == ActivationForm::kInt8)
    return code_activations(ctx, x, tokens, columns, x_stride, packed, sliced_floats(columns));
  split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t)
      pack_token(x + t * x_stride, columns, packed + t * sliced_floats(columns));
  });
}

void sliced_matmul(const Context& ctx, const float* packed, std::size_t tokens, const codec::SlicedView& w,
                   SliceView which, std::span<const float> bias, float* y, std::size_t y_stride) {
  const std::size_t rows = w.shape.rows;
  check(w, which);
  SLUICE_CHECK(bias.empty() || bias.size() == rows, fmt::format("{} biases, {} rows", bias.size(), rows));
  SLUICE_CHECK(y_stride >= rows || tokens <= 1, fmt::format("stride {}, {} rows", y_stride, rows));
  if (tokens == 0) return;
  const SlicedArgs args = args_of(packed, tokens, w, which, bias, y, y_stride);
  const auto strips = strips_of(ctx);
  split(ctx, rows, kStripRows, tokens * rows * w.shape.columns, [&](std::size_t begin, std::size_t end) {
    strips(args, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
  });
}

void sliced_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  const SlicedWeight& w = product.weight->slices;
  check(w.matrix, w.which);
  const SlicedArgs args =
      args_of(product.packed, 1, w.matrix, w.which, product.bias, product.y, w.matrix.shape.rows);
  strips_of(ctx)(args, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
}

}  // namespace sluice::kernels
