// Products whose kernels read the planes of a matrix: words, slices, codes.
#include <algorithm>

#include "base/machine/thread_pool.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/format_kernels.h"
#include "kernels/products/input_form.h"
#include "kernels/products/scratch.h"
#include "kernels/products/vector_products_impl.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

bool is_coded(const Context& ctx, const FormatKernels& kernels) {
  return ctx.activations == ActivationForm::kInt8 && kernels.coded_rows != nullptr;
}

void multiply_some(const Context& ctx, RowsKernel rows, const ProductArgs& args) {
  split(ctx, args.rows, kRowGrain, args.tokens * args.rows * args.columns,
        [&](std::size_t begin, std::size_t end) { rows(args, begin, end); });
}

void multiply(const Context& ctx, const FormatKernels& kernels, const Product& product) {
  const codec::InputForm form = *product.w.format->input;
  const std::size_t columns = product.w.shape.columns, stride = input_form(form).floats(columns);
  const bool coded = is_coded(ctx, kernels);
  const RowsKernel rows = coded ? kernels.coded_rows : kernels.rows;
  // Activations for words were arranged for all products with them; codes are made of those, and what was
  // rounded becomes floats again.
  const bool recodes = coded && form == codec::InputForm::kWords;
  const bool widens = !coded && ctx.rounds() && form == codec::InputForm::kWords;
  if (!recodes && !widens)
    return multiply_some(ctx, rows, product_args(product, product.x, stride, product.tokens, product.y));
  for (std::size_t t = 0; t < product.tokens; t += kTokensAtOnce) {
    const std::size_t n = std::min(kTokensAtOnce, product.tokens - t);
    const float* const some = product.x + t * stride;
    float* const y = product.y + t * product.y_stride;
    if (widens) {
      const float* const widened = widen_activations(ctx, some, n, columns);
      multiply_some(ctx, rows, product_args(product, widened, stride, n, y));
      continue;
    }
    const std::size_t floats = activation_code_floats(columns);
    auto* const codes = reinterpret_cast<float*>(scratch_room(ctx, Room::kCodes, n * floats * sizeof(float)));
    code_arranged(ctx, some, n, columns, codes);
    multiply_some(ctx, rows, product_args(product, codes, floats, n, y));
  }
}

bool multiply_rows(const Context& ctx, const FormatKernels& kernels, const Product& product,
                   std::size_t begin, std::size_t end) {
  const ProductArgs args = product_args(product, product.x, 0, 1, product.y);  // one token needs no stride
  (is_coded(ctx, kernels) ? kernels.coded_rows : kernels.rows)(args, begin, end);
  return true;
}

}  // namespace

constinit const ProductDriver kRowProducts = {multiply, multiply_rows, false};
constinit const ProductDriver kWideProducts = {multiply, multiply_rows, true};

}  // namespace sluice::kernels
