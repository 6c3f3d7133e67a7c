#include "kernels/ops/mlp.h"

#include <array>

#include "base/error.h"
#include "kernels/elementwise/elementwise.h"
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

}  // namespace

void mlp(const Context& ctx, const Mlp& mlp, std::size_t tokens, const MlpScratch& scratch) {
  if (tokens == 1) return mlps_together(ctx, {&mlp, 1}, scratch);
  const std::size_t width = mlp.up.shape.rows;
  if (!mlp.gate.empty())
    matmul(ctx, input_of(mlp, mlp.gate), tokens, mlp.gate, mlp.gate_bias, scratch.gate, width);
  matmul(ctx, input_of(mlp, mlp.up), tokens, mlp.up, mlp.up_bias, scratch.up, width);
  if (mlp.gate.empty())
    relu(ctx, tokens * width, scratch.up);
  else
    silu_mul(ctx, scratch.gate, scratch.up, tokens * width, scratch.up);
  arrange_for(ctx, mlp.down, scratch.up, tokens, width, scratch.inner);
  matmul(ctx, scratch.inner, tokens, mlp.down, mlp.down_bias, mlp.out, mlp.down.shape.rows);
}

void mlps_together(const Context& ctx, std::span<const Mlp> mlps, const MlpScratch& scratch) {
  Pass pass(ctx);
  std::size_t at = 0;  // position in scratch.gate and scratch.up
  for (const Mlp& mlp : mlps) {
    VectorProduct product{input_of(mlp, mlp.up), &mlp.up, scratch.up + at, mlp.up_bias};
    if (!mlp.gate.empty()) {
      product.gate = &mlp.gate;
      product.gated = scratch.gate + at;
      product.gate_x = input_of(mlp, mlp.gate);
      product.gate_bias = mlp.gate_bias;
    }
    pass.add(product);
    at += mlp.up.shape.rows;
  }
  pass.run();
  at = 0;
  float* inner = scratch.inner;
  for (const Mlp& mlp : mlps) {
    const std::size_t width = mlp.up.shape.rows;
    if (mlp.gate.empty()) relu(ctx, width, scratch.up + at);
    arrange_for(ctx, mlp.down, scratch.up + at, 1, width, inner);
    pass.add({inner, &mlp.down, mlp.out, mlp.down_bias});
    at += width;
    inner += activation_floats(mlp.down);
  }
  pass.run();
}

}  // namespace sluice::kernels
