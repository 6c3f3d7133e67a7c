#include "kernels/products/words/matmul.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/float16.h"
#include "kernels/kernel_table.h"
#include "kernels/lanes/lanes_scalar.h"
#include "kernels/products/packed/tile_impl.h"
#include "kernels/products/packed/tile_matmul.h"
#include "kernels/products/scratch.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

void check_weight(const Weight& w) {
  SLUICE_CHECK(w.dtype == DType::kBF16 || w.dtype == DType::kF16 || w.dtype == DType::kF32,
               fmt::format("weights are {}", dtype_name(w.dtype)));
  SLUICE_CHECK(w.data != nullptr || w.rows * w.cols == 0,
               fmt::format("{} x {} without data", w.rows, w.cols));
}

// With few tokens memory is the limit. Prefetching eight lines ahead in each row takes over where the
// prefetcher of Intel's CPUs stops when a row, often a page, begins: 7 to 10 % faster than without. AMD's
// (Zen 3, Zen 5) continues into the next page by itself: prefetching costs it 5 to 15 %.
std::size_t ahead_for_few() {
  static const std::size_t bytes = cpu_is_intel() ? 512 : 0;
  return bytes;
}

MatmulArgs args_of(const float* packed, std::size_t tokens, const Weight& w, std::span<const float> bias,
                   float* y, std::size_t y_stride) {
  MatmulArgs args{};
  args.packed = packed;
  args.packed_stride = packed_floats(w.cols);
  args.tokens = tokens;
  args.weights = w.data;
  args.row_bytes = w.cols * dtype_bytes(w.dtype);
  args.dtype = w.dtype;
  args.cols = w.cols;
  args.bias = bias.empty() ? nullptr : bias.data();
  args.y = y;
  args.y_stride = y_stride;
  args.ahead_bytes = ahead_for_few();
  return args;
}

// Rows are divided in groups that leave whole cache lines of y to each thread and whole register tiles.
constexpr std::size_t kRowGrain = 16;

}  // namespace

const float* widen_activations(const Context& ctx, const float* packed, std::size_t tokens,
                               std::size_t cols) {
  SLUICE_CHECK(tokens <= kTokensAtOnce, fmt::format("{} tokens", tokens));
  const std::size_t stride = packed_floats(cols);
  auto* const widened =
      reinterpret_cast<float*>(scratch_room(ctx, Room::kWidened, (tokens + 1) * stride * sizeof(float)));
  float* const row = widened + tokens * stride;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t c = 0; c < cols; ++c) {
      std::uint16_t word;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(packed + t * stride) + 2 * c, sizeof(word));
      row[c] = bf16_to_float(word);
    }
    kernel_table(ctx.isa).matmul->pack(row, cols, widened + t * stride);
  }
  return widened;
}

void pack_activations(const Context& ctx, const float* x, std::size_t tokens, std::size_t cols,
                      std::size_t x_stride, float* packed) {
  if (ctx.rounds()) {
    const auto round = tile_kernels(ctx).round;
    split(ctx, tokens, 1, tokens * cols, [&](std::size_t begin, std::size_t end) {
      for (std::size_t t = begin; t < end; ++t)
        round(x + t * x_stride, cols, reinterpret_cast<std::byte*>(packed + t * packed_floats(cols)));
    });
    return;
  }
  const auto pack = kernel_table(ctx.isa).matmul->pack;
  split(ctx, tokens, 1, tokens * cols, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) pack(x + t * x_stride, cols, packed + t * packed_floats(cols));
  });
}

void matmul(const Context& ctx, const float* packed, std::size_t tokens, const Weight& w,
            std::span<const float> bias, float* y, std::size_t y_stride) {
  check_weight(w);
  SLUICE_CHECK(bias.empty() || bias.size() == w.rows, fmt::format("{} biases, {} rows", bias.size(), w.rows));
  SLUICE_CHECK(y_stride >= w.rows || tokens <= 1, fmt::format("stride {}, {} rows", y_stride, w.rows));
  if (tokens == 0) return;
  if (ctx.rounds() && w.dtype == DType::kBF16) return tile_matmul(ctx, packed, tokens, w, bias, y, y_stride);
  const auto rows = kernel_table(ctx.isa).matmul->rows;
  const std::size_t most = ctx.rounds() ? kTokensAtOnce : tokens;
  for (std::size_t t = 0; t < tokens; t += most) {
    const std::size_t n = std::min(most, tokens - t);
    const float* some = packed + t * packed_floats(w.cols);
    if (ctx.rounds()) some = widen_activations(ctx, some, n, w.cols);
    const MatmulArgs args = args_of(some, n, w, bias, y + t * y_stride, y_stride);
    split(ctx, w.rows, kRowGrain, n * w.rows * w.cols,
          [&](std::size_t begin, std::size_t end) { rows(args, begin, end); });
  }
}

void word_rows(const Context& ctx, const VectorProduct& product, std::size_t begin, std::size_t end) {
  const Weight& w = product.weight->words;
  check_weight(w);
  kernel_table(ctx.isa).matmul->rows(args_of(product.packed, 1, w, product.bias, product.y, w.rows), begin,
                                     end);
}

void matmul_transposed(const Context& ctx, const float* x, std::size_t tokens, std::size_t x_stride,
                       const Weight& w, float* y, std::size_t y_stride) {
  check_weight(w);
  SLUICE_CHECK(y_stride >= w.cols || tokens <= 1, fmt::format("stride {}, {} columns", y_stride, w.cols));
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t c = 0; c < w.cols; ++c) y[t * y_stride + c] = 0.0f;
  }
  const TransposedArgs args = {x, x_stride, w.data, w.dtype, w.rows, w.cols, y, y_stride};
  const auto transposed = kernel_table(ctx.isa).matmul->transposed;
  const std::size_t cost = tokens * w.rows * w.cols;
  if (tokens >= 8 * threads(ctx)) {
    split(ctx, tokens, 4, cost,
          [&](std::size_t begin, std::size_t end) { transposed(args, begin, end, 0, w.cols); });
  } else {
    split(ctx, w.cols, 64, cost,
          [&](std::size_t begin, std::size_t end) { transposed(args, 0, tokens, begin, end); });
  }
}

void row_to_float(const Weight& w, std::size_t row, float* out) {
  check_weight(w);
  SLUICE_CHECK(row < w.rows, fmt::format("row {} of {}", row, w.rows));
  for (std::size_t c = 0; c < w.cols; ++c) out[c] = element(w.row(row), w.dtype, c);
}

}  // namespace sluice::kernels
