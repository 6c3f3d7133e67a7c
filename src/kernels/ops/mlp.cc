#include "kernels/ops/mlp.h"

#include <array>
#include <string>

#include "base/error.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"

namespace sluice::kernels {
namespace {

// As many products as one pass of the threads takes.
class Pass {
 public:
  explicit Pass(const Context& ctx) : ctx_(ctx) {}
  void add(const VectorProduct& product) {
    if (count_ == products_.size()) run();
    products_[count_++] = product;
  }
  void run() {
    multiply_vectors(ctx_, {products_.data(), count_});
    count_ = 0;
  }

 private:
  const Context& ctx_;
  std::array<VectorProduct, 64> products_;
  std::size_t count_ = 0;
};

const float* input_of(const Mlp& mlp, const codec::MatrixRef& matrix) {
  return mlp.inputs[static_cast<std::size_t>(*matrix.format->input)];
}

void check(const Mlp& mlp, const GatingRow& gating) {
  SLUICE_CHECK(mlp.gate.empty() != gating.gate, "a gate that the form has not, or lacks");
  SLUICE_CHECK(mlp.up.shape.rows == mlp.down.shape.columns * gating.up_rows,
               std::to_string(mlp.up.shape.rows));
}

}  // namespace

void mlp(const Context& ctx, const Mlp& mlp, std::size_t tokens, const MlpScratch& scratch) {
  if (tokens == 1) return mlps_together(ctx, {&mlp, 1}, scratch);
  const GatingRow& gating = gating_row(mlp.gating.form);
  check(mlp, gating);
  const std::size_t width = mlp.down.shape.columns;
  if (gating.gate) matmul(ctx, input_of(mlp, mlp.gate), tokens, mlp.gate, mlp.gate_bias, scratch.gate, width);
  matmul(ctx, input_of(mlp, mlp.up), tokens, mlp.up, mlp.up_bias, scratch.up, mlp.up.shape.rows);
  const float* const inner = gating.apply(ctx, mlp.gating, tokens * width, scratch.gate, scratch.up);
  arrange_for(ctx, mlp.down, inner, tokens, width, scratch.inner);
  matmul(ctx, scratch.inner, tokens, mlp.down, mlp.down_bias, mlp.out, mlp.down.shape.rows);
}

void mlps_together(const Context& ctx, std::span<const Mlp> mlps, const MlpScratch& scratch) {
  Pass pass(ctx);
  float *gate = scratch.gate, *up = scratch.up;
  for (const Mlp& mlp : mlps) {
    const GatingRow& gating = gating_row(mlp.gating.form);
    check(mlp, gating);
    VectorProduct product{input_of(mlp, mlp.up), &mlp.up, up, mlp.up_bias};
    if (gating.in_products) {
      product.gate = &mlp.gate;
      product.gated = gate;
      product.gate_x = input_of(mlp, mlp.gate);
      product.gate_bias = mlp.gate_bias;
    } else if (gating.gate) {
      pass.add({input_of(mlp, mlp.gate), &mlp.gate, gate, mlp.gate_bias});
    }
    pass.add(product);
    gate += mlp.down.shape.columns;
    up += mlp.up.shape.rows;
  }
  pass.run();
  gate = scratch.gate, up = scratch.up;
  float* inner = scratch.inner;
  for (const Mlp& mlp : mlps) {
    const GatingRow& gating = gating_row(mlp.gating.form);
    const std::size_t width = mlp.down.shape.columns;
    const float* const made = gating.in_products ? up : gating.apply(ctx, mlp.gating, width, gate, up);
    arrange_for(ctx, mlp.down, made, 1, width, inner);
    pass.add({inner, &mlp.down, mlp.out, mlp.down_bias});
    gate += width;
    up += mlp.up.shape.rows;
    inner += activation_floats(mlp.down);
  }
  pass.run();
}

}  // namespace sluice::kernels
