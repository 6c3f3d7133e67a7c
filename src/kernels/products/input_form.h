// The forms of activations that products read, by the format of the matrix: the rows of codec::InputForm.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "codec/matrix_format.h"
#include "kernels/context.h"

namespace sluice::kernels {

struct InputFormRow {
  std::size_t (*floats)(std::size_t columns);  // for one token
  // x (tokens, columns), row t at x + t*x_stride  →  arranged (tokens, floats(columns)).
  void (*arrange)(const Context& ctx, const float* x, std::size_t tokens, std::size_t columns,
                  std::size_t x_stride, float* arranged);
};
const InputFormRow& input_form(codec::InputForm form);

// A set of forms: those that a layer's matrices read.
class InputForms {
 public:
  void add(codec::InputForm form) { has_[static_cast<std::size_t>(form)] = true; }
  bool has(codec::InputForm form) const { return has_[static_cast<std::size_t>(form)]; }
  // Calls body(form) for each, in their order.
  template <class Body>
  void each(const Body& body) const {
    for (std::size_t form = 0; form < codec::kInputForms; ++form)
      if (has_[form]) body(static_cast<codec::InputForm>(form));
  }

 private:
  std::array<bool, codec::kInputForms> has_{};
};

// The forms that products with these formats read.
InputForms input_forms_of(std::span<const codec::MatrixFormat* const> formats);

// The same activations in several forms, by form; null: not in that form. Non-owning.
using ArrangedInputs = std::array<const float*, codec::kInputForms>;

}  // namespace sluice::kernels
