#include "kernels/products/input_form.h"

#include "kernels/products/blocks/coded_blocks.h"
#include "kernels/products/codes/sliced_matmul.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {
namespace {

void arrange_exactly(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                     std::size_t x_stride, float* arranged) {
  Context exact = ctx;
  exact.products = Products::kExact;
  arrange_activations(exact, x, tokens, columns, x_stride, arranged);
}

void arrange_for_blocks(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                        std::size_t x_stride, float* arranged) {
  if (ctx.activations == ActivationForm::kInt8)
    return code_for_blocks(ctx, x, tokens, columns, x_stride, arranged, arranged_floats(columns));
  arrange_exactly(ctx, x, tokens, columns, x_stride, arranged);
}

}  // namespace

const InputFormRow& input_form(codec::InputForm form) {
  // In the order of the enum.
  static constexpr InputFormRow kRows[codec::kInputForms] = {{arranged_floats, arrange_activations},
                                                             {sliced_floats, arrange_for_slices},
                                                             {arranged_floats, arrange_exactly},
                                                             {arranged_floats, arrange_for_blocks}};
  return kRows[static_cast<std::size_t>(form)];
}

InputForms input_forms_of(std::span<const codec::MatrixFormat* const> formats) {
  InputForms forms;
  for (const codec::MatrixFormat* const format : formats)
    if (format->input) forms.add(*format->input);
  return forms;
}

}  // namespace sluice::kernels
