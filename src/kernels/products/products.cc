#include "kernels/products/products.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "device/space.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/input_form.h"
#include "kernels/products/words/matmul_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

void check(const codec::MatrixRef& w) {
  SLUICE_CHECK(!w.empty(), "no matrix");
  SLUICE_CHECK(w.planes[0] || w.shape.elements() == 0,
               fmt::format("{} x {} without data", w.shape.rows, w.shape.columns));
  SLUICE_CHECK(
      !w.format->slices || w.view != codec::SliceView::kHigh || w.planes[1] || w.shape.elements() == 0,
      "no LSB slice");
}

}  // namespace

std::size_t activation_floats(const codec::MatrixRef& w) {
  return input_form(*w.format->input).floats(w.shape.columns);
}

void arrange_for(const Context& ctx, const codec::MatrixRef& w, const float* x, std::size_t tokens,
                 std::size_t x_stride, float* arranged) {
  input_form(*w.format->input).arrange(ctx, x, tokens, w.shape.columns, x_stride, arranged);
}

void matmul(const Context& ctx, const float* x, std::size_t tokens, const codec::MatrixRef& w,
            std::span<const float> bias, float* y, std::size_t y_stride) {
  check(w);
  const std::size_t rows = w.shape.rows;
  SLUICE_CHECK(bias.empty() || bias.size() == rows, fmt::format("{} biases, {} rows", bias.size(), rows));
  SLUICE_CHECK(y_stride >= rows || tokens <= 1, fmt::format("stride {}, {} rows", y_stride, rows));
  if (tokens == 0 || rows == 0) return;
  const FormatRow& row = format_row(ctx, w.format);
  row.driver->multiply(ctx, row.of(ctx.isa), {x, tokens, w, bias, y, y_stride});
}

void matmul_transposed(const Context& ctx, const float* x, std::size_t tokens, std::size_t x_stride,
                       const codec::MatrixRef& w, float* y, std::size_t y_stride) {
  check(w);
  const auto transposed = format_row(ctx, w.format).of(ctx.isa).transposed;
  SLUICE_CHECK(transposed != nullptr, std::string(w.format->name));
  const std::size_t rows = w.shape.rows, columns = w.shape.columns;
  SLUICE_CHECK(y_stride >= columns || tokens <= 1, fmt::format("stride {}, {} columns", y_stride, columns));
  for (std::size_t t = 0; t < tokens; ++t) std::fill_n(y + t * y_stride, columns, 0.0f);
  const TransposedArgs args = {x, x_stride, device::host_space().pointer(w.planes[0]), rows, columns,
                               y, y_stride};
  const std::size_t cost = tokens * rows * columns;
  if (tokens >= 8 * threads(ctx)) {
    split(ctx, tokens, 4, cost,
          [&](std::size_t begin, std::size_t end) { transposed(args, begin, end, 0, columns); });
  } else {
    split(ctx, columns, 64, cost,
          [&](std::size_t begin, std::size_t end) { transposed(args, 0, tokens, begin, end); });
  }
}

}  // namespace sluice::kernels
