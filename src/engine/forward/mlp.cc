#include "engine/forward/mlp.h"

#include <array>

#include "base/error.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"

namespace sluice::engine {
namespace {

using kernels::VectorProduct;

// As many products as one pass of the threads takes.
class Pass {
 public:
  Pass(const kernels::Context& kernels) : kernels_(kernels) {}
  void add(const VectorProduct& product) {
    if (count_ == products_.size()) run();
    products_[count_++] = product;
  }
  void run() {
    kernels::multiply_vectors(kernels_, {products_.data(), count_});
    count_ = 0;
  }

 private:
  const kernels::Context& kernels_;
  std::array<VectorProduct, 64> products_;
  std::size_t count_ = 0;
};

const float* input_of(const Mlp& mlp, const codec::MatrixRef& matrix) {
  return mlp.inputs[static_cast<std::size_t>(*matrix.format->input)];
}

}  // namespace

void compute(const kernels::Context& kernels, const Mlp& mlp, std::size_t tokens, const Workspace& w) {
  if (tokens == 1) return compute_together(kernels, {&mlp, 1}, w);
  const std::size_t width = mlp.up.shape.rows;
  if (!mlp.gate.empty())
    kernels::matmul(kernels, input_of(mlp, mlp.gate), tokens, mlp.gate, mlp.gate_bias, w.gate, width);
  kernels::matmul(kernels, input_of(mlp, mlp.up), tokens, mlp.up, mlp.up_bias, w.up, width);
  if (mlp.gate.empty())
    kernels::relu(kernels, tokens * width, w.up);
  else
    kernels::silu_mul(kernels, w.gate, w.up, tokens * width, w.up);
  kernels::arrange_for(kernels, mlp.down, w.up, tokens, width, w.inner);
  kernels::matmul(kernels, w.inner, tokens, mlp.down, mlp.down_bias, mlp.out, mlp.down.shape.rows);
}

void compute_together(const kernels::Context& kernels, std::span<const Mlp> mlps, const Workspace& w) {
  Pass pass(kernels);
  std::size_t at = 0;  // position in w.gate and w.up
  for (const Mlp& mlp : mlps) {
    VectorProduct product{input_of(mlp, mlp.up), &mlp.up, w.up + at, mlp.up_bias};
    if (!mlp.gate.empty()) {
      product.gate = &mlp.gate;
      product.gated = w.gate + at;
      product.gate_x = input_of(mlp, mlp.gate);
      product.gate_bias = mlp.gate_bias;
    }
    pass.add(product);
    at += mlp.up.shape.rows;
  }
  pass.run();
  at = 0;
  float* inner = w.inner;
  for (const Mlp& mlp : mlps) {
    const std::size_t width = mlp.up.shape.rows;
    if (mlp.gate.empty()) kernels::relu(kernels, width, w.up + at);
    kernels::arrange_for(kernels, mlp.down, w.up + at, 1, width, inner);
    pass.add({inner, &mlp.down, mlp.out, mlp.down_bias});
    at += width;
    inner += kernels::activation_floats(mlp.down);
  }
  pass.run();
}

}  // namespace sluice::engine
