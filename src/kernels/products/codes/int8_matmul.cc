#include "kernels/products/codes/int8_matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/codes/int8_matmul_impl.h"
#include "kernels/products/codes/integer_impl.h"
#include "kernels/products/scratch.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kStripRows;

Int8Args args_of(const float* packed, std::size_t tokens, const Int8Weight& w, std::span<const float> bias,
                 float* y, std::size_t y_stride) {
  Int8Args args{};
  args.packed = packed;
  args.packed_stride = packed_floats(w.shape.columns);
  args.tokens = tokens;
  args.codes = w.data;
  args.scales = w.data + w.shape.scales_offset();
  args.rows = w.shape.rows;
  args.columns = w.shape.columns;
  args.bias = bias.empty() ? nullptr : bias.data();
  args.y = y;
  args.y_stride = y_stride;
  return args;
}

// A matrix in lines of 8 bits, in the form for the kernels of coded activations.
SlicedArgs coded_args(const float* codes, std::size_t tokens, const Int8Weight& w,
                      std::span<const float> bias, float* y, std::size_t y_stride) {
  SlicedArgs args{};
  args.packed = codes;
  args.packed_stride = activation_code_floats(w.shape.columns);
  args.tokens = tokens;
  args.msb = w.data;
  args.scales = w.data + w.shape.scales_offset();
  args.factor = 1;
  args.rows = w.shape.rows;
  args.groups = w.shape.groups();
  args.bias = bias.empty() ? nullptr : bias.data();
  args.y = y;
  args.y_stride = y_stride;
  return args;
}

void multiply_codes(const Context& ctx, const float* packed, std::size_t tokens, const Int8Weight& w,
                    std::span<const float> bias, float* y, std::size_t y_stride) {
  const std::size_t rows = w.shape.rows, columns = w.shape.columns;
  const auto strips = kernel_table(ctx.isa).integer->dense;
  for (std::size_t t = 0; t < tokens; t += kTokensAtOnce) {
    const std::size_t n = std::min(kTokensAtOnce, tokens - t);
    auto* const codes = reinterpret_cast<float*>(
        scratch_room(ctx, Room::kCodes, n * activation_code_floats(columns) * sizeof(float)));
    code_packed(ctx, packed + t * packed_floats(columns), n, columns, codes);
    const SlicedArgs args = coded_args(codes, n, w, bias, y + t * y_stride, y_stride);
    split(ctx, rows, kStripRows, n * rows * columns, [&](std::size_t begin, std::size_t end) {
      strips(args, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
    });
  }
}

}  // namespace

void int8_matmul(const Context& ctx, const float* packed, std::size_t tokens, const Int8Weight& w,
                 std::span<const float> bias, float* y, std::size_t y_stride) {
  const std::size_t rows = w.shape.rows, columns = w.shape.columns;
  SLUICE_CHECK(w.data != nullptr && columns > 0, fmt::format("{} columns", columns));
  SLUICE_CHECK(bias.empty() || bias.size() == rows, fmt::format("{} biases, {} rows", bias.size(), rows));
  SLUICE_CHECK(y_stride >= rows || tokens <= 1, fmt::format("stride {}, {} rows", y_stride, rows));
  if (tokens == 0) return;
  if (ctx.activations == ActivationForm::kInt8)
    return multiply_codes(ctx, packed, tokens, w, bias, y, y_stride);
  const auto strips = kernel_table(ctx.isa).int8->strips;
  const std::size_t most = ctx.rounds() ? kTokensAtOnce : tokens;
  for (std::size_t t = 0; t < tokens; t += most) {
    const std::size_t n = std::min(most, tokens - t);
    const float* some = packed + t * packed_floats(columns);
    if (ctx.rounds()) some = widen_activations(ctx, some, n, columns);
    const Int8Args args = args_of(some, n, w, bias, y + t * y_stride, y_stride);
    split(ctx, rows, kStripRows, n * rows * columns, [&](std::size_t begin, std::size_t end) {
      strips(args, begin / kStripRows, (end + kStripRows - 1) / kStripRows);
    });
  }
}

void int8_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  const Int8Weight& w = product.weight->int8;
  const std::size_t strip = begin / kStripRows, strip_end = (end + kStripRows - 1) / kStripRows;
  if (ctx.activations == ActivationForm::kInt8) {
    const SlicedArgs args = coded_args(product.packed, 1, w, product.bias, product.y, w.shape.rows);
    return kernel_table(ctx.isa).integer->dense(args, strip, strip_end);
  }
  const Int8Args args = args_of(product.packed, 1, w, product.bias, product.y, w.shape.rows);
  kernel_table(ctx.isa).int8->strips(args, strip, strip_end);
}

}  // namespace sluice::kernels
