// Products with formats in blocks of codes, and with those that have no kernels: their rows become fp32 words
// first.
#include "base/machine/thread_pool.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/input_form.h"
#include "kernels/products/scratch.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

// The memory of the rows that are decoded at a time.
float* panel(const Context& ctx, std::size_t columns) {
  return reinterpret_cast<float*>(scratch_room(ctx, Room::kPanel, kRowGrain * columns * sizeof(float)));
}

void decode_and_multiply(const Context& ctx, const FormatKernels& kernels, const Product& product,
                         std::size_t begin, std::size_t end) {
  const codec::MatrixRef& w = product.w;
  const std::size_t columns = w.shape.columns;
  float* const words = panel(ctx, columns);
  ProductArgs args =
      product_args(product, product.x, input_form(*w.format->input).floats(columns), product.tokens, nullptr);
  args.planes[0] = reinterpret_cast<const std::byte*>(words);
  args.row_bytes = codec::kFormatF32.plane_bytes({1, columns}, 0);
  args.ahead_bytes = 0;
  for (std::size_t row = begin; row < end; row += kRowGrain) {
    args.rows = end - row < kRowGrain ? end - row : kRowGrain;
    for (std::size_t r = 0; r < args.rows; ++r) w.format->row(w, row + r, words + r * columns);
    args.bias = product.bias.empty() ? nullptr : product.bias.data() + row;
    args.y = product.y + row;
    kernels.rows(args, 0, args.rows);
  }
}

void multiply_blocks(RowsKernel rows, const Product& product, std::size_t begin, std::size_t end) {
  const std::size_t stride = input_form(*product.w.format->input).floats(product.w.shape.columns);
  rows(product_args(product, product.x, stride, product.tokens, product.y), begin, end);
}

void multiply_some(const Context& ctx, const FormatKernels& kernels, const Product& product,
                   std::size_t begin, std::size_t end) {
  if (ctx.activations == ActivationForm::kInt8 && kernels.coded_rows != nullptr)
    return multiply_blocks(kernels.coded_rows, product, begin, end);
  if (kernels.blocks != nullptr) return multiply_blocks(kernels.blocks, product, begin, end);
  decode_and_multiply(ctx, kernels, product, begin, end);
}

void multiply(const Context& ctx, const FormatKernels& kernels, const Product& product) {
  const codec::MatrixShape shape = product.w.shape;
  split(ctx, shape.rows, kRowGrain, product.tokens * shape.elements(),
        [&](std::size_t begin, std::size_t end) { multiply_some(ctx, kernels, product, begin, end); });
}

bool multiply_rows(const Context& ctx, const FormatKernels& kernels, const Product& product,
                   std::size_t begin, std::size_t end) {
  multiply_some(ctx, kernels, product, begin, end);
  return true;
}

}  // namespace

constinit const ProductDriver kDecodedProducts = {multiply, multiply_rows, false};

}  // namespace sluice::kernels
