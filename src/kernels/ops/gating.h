// What stands between the products of an MLP, and what its matrices therefore are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/context.h"
#include "kernels/elementwise/elementwise.h"

namespace sluice::kernels {

enum class GatingForm : std::uint8_t {
  kSilu,          // silu(gate·x) ⊙ up·x
  kRelu,          // max(up·x, 0): no gate
  kClamped,       // clamped_mul() of gate·x and up·x
  kClampedPairs,  // clamped_mul_pairs(): the rows of `up` are those of gate and up by turns; no gate
};
inline constexpr std::size_t kGatingForms = 4;

struct Gating {
  GatingForm form = GatingForm::kSilu;
  ClampedGate clamped = {};  // for the clamped forms
};

// What a form is; gating.cc has the table.
struct GatingRow {
  GatingForm form;
  bool gate;            // an MLP has the matrix `gate`
  std::size_t up_rows;  // rows of `up` for each number that `down` reads
  // Products of one token make it themselves (VectorProduct::gate).
  bool in_products;
  // The `n` numbers that `down` reads, of what the products have made: `up` has n · up_rows of them. Returns
  // where they are: in `gate` or in `up`.
  float* (*apply)(const Context& ctx, const Gating& gating, std::size_t n, float* gate, float* up);
};
const GatingRow& gating_row(GatingForm form);

}  // namespace sluice::kernels
