#include "kernels/products/words/matmul.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "base/float16.h"
#include "base/machine/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/packed/tile_impl.h"
#include "kernels/products/packed/tile_matmul.h"
#include "kernels/products/scratch.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul_impl.h"
#include "kernels/split.h"

namespace sluice::kernels {

const float* widen_activations(const Context& ctx, const float* arranged, std::size_t tokens,
                               std::size_t columns) {
  SLUICE_CHECK(tokens <= kTokensAtOnce, fmt::format("{} tokens", tokens));
  const std::size_t stride = arranged_floats(columns);
  auto* const widened =
      reinterpret_cast<float*>(scratch_room(ctx, Room::kWidened, (tokens + 1) * stride * sizeof(float)));
  float* const row = widened + tokens * stride;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t c = 0; c < columns; ++c) {
      std::uint16_t word;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(arranged + t * stride) + 2 * c, sizeof(word));
      row[c] = bf16_to_float(word);
    }
    arrange_kernel(ctx.isa)(row, columns, widened + t * stride);
  }
  return widened;
}

void arrange_activations(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                         std::size_t x_stride, float* arranged) {
  if (ctx.rounds()) {
    const auto round = tile_kernels(ctx).round;
    split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
      for (std::size_t t = begin; t < end; ++t)
        round(x + t * x_stride, columns,
              reinterpret_cast<std::byte*>(arranged + t * arranged_floats(columns)));
    });
    return;
  }
  const auto arrange = arrange_kernel(ctx.isa);
  split(ctx, tokens, 1, tokens * columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t)
      arrange(x + t * x_stride, columns, arranged + t * arranged_floats(columns));
  });
}

namespace {

void multiply(const Context& ctx, const FormatKernels& kernels, const Product& product) {
  if (ctx.rounds()) return kWordTiles.multiply(ctx, product);
  kWideProducts.multiply(ctx, kernels, product);
}

bool multiply_rows(const Context& ctx, const FormatKernels& kernels, const Product& product,
                   std::size_t begin, std::size_t end) {
  if (ctx.rounds()) return kWordTiles.multiply_rows(ctx, product, begin, end);
  return kWideProducts.multiply_rows(ctx, kernels, product, begin, end);
}

}  // namespace

constinit const ProductDriver kBf16Products = {multiply, multiply_rows, false};

}  // namespace sluice::kernels
