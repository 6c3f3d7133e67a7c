#include "engine/forward/mlp.h"

#include <array>

#include "base/error.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/products/vector_products.h"
#include "kernels/products/words/matmul.h"

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

}  // namespace

void compute(const kernels::Context& kernels, const Mlp& mlp, std::size_t tokens, const Workspace& w) {
  if (tokens == 1) return compute_together(kernels, {&mlp, 1}, w);
  const std::size_t width = mlp.up.rows();
  if (!mlp.gate.empty()) kernels::matmul(kernels, mlp.packed, tokens, mlp.gate, {}, w.gate, width);
  kernels::matmul(kernels, mlp.packed, tokens, mlp.up, {}, w.up, width);
  if (mlp.gate.empty())
    kernels::relu(kernels, tokens * width, w.up);
  else
    kernels::silu_mul(kernels, w.gate, w.up, tokens * width, w.up);
  kernels::pack_for(kernels, mlp.down, w.up, tokens, width, w.packed_inner);
  kernels::matmul(kernels, w.packed_inner, tokens, mlp.down, {}, mlp.out, mlp.down.rows());
}

void compute_together(const kernels::Context& kernels, std::span<const Mlp> mlps, const Workspace& w) {
  Pass pass(kernels);
  std::size_t at = 0;  // position in w.gate and w.up
  for (const Mlp& mlp : mlps) {
    pass.add({.packed = mlp.packed,
              .weight = &mlp.up,
              .y = w.up + at,
              .gate = mlp.gate.empty() ? nullptr : &mlp.gate,
              .gated = w.gate + at});
    at += mlp.up.rows();
  }
  pass.run();
  at = 0;
  float* inner = w.packed_inner;
  for (const Mlp& mlp : mlps) {
    const std::size_t width = mlp.up.rows();
    if (mlp.gate.empty()) kernels::relu(kernels, width, w.up + at);
    kernels::pack_for(kernels, mlp.down, w.up + at, 1, width, inner);
    pass.add({inner, &mlp.down, mlp.out});
    at += width;
    inner += kernels::activation_floats(mlp.down);
  }
  pass.run();
}

}  // namespace sluice::engine
