// Several products of one token each, in one pass of the threads: everything that a layer asks of memory at
// once. Alone, each of them would end with one thread waiting for the others.
#pragma once

#include <cstddef>
#include <span>

#include "codec/matrix_format.h"
#include "kernels/context.h"

namespace sluice::kernels {

// y[r] = Σ_c x[c]·w[r][c] (+ bias[r] when bias is not empty). With a gate, a matrix of the same shape and
// any format: y[r] = silu(Σ_c gate_x[c]·gate[r][c] (+ gate_bias[r])) · that. Non-owning.
struct VectorProduct {
  const float* x = nullptr;  // arranged by arrange_for() (products.h)
  const codec::MatrixRef* weight = nullptr;
  float* y = nullptr;
  std::span<const float> bias = {};
  const codec::MatrixRef* gate = nullptr;
  float* gated = nullptr;         // (rows) room for the products of `gate`
  const float* gate_x = nullptr;  // the same activations as `x`, arranged for the gate
  std::span<const float> gate_bias = {};
};

// Same bits as matmul() of each product with one token, and silu_mul() of those with a gate. Threads split
// the rows of all products together; the thread that has rows of a gate also has those rows of its product.
// Error(kCorrupt) as matmul().
void multiply_vectors(const Context& ctx, std::span<const VectorProduct> products);

}  // namespace sluice::kernels
