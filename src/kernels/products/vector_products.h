// Several products of one token each, in one pass of the threads: everything that a layer asks of memory at
// once. Alone, each of them would end with one thread waiting for the others.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/context.h"
#include "kernels/products/weight_view.h"

namespace sluice::kernels {

// y[r] = Σ_c x[c]·w[r][c] (+ bias[r] when bias is not empty). With a gate, a matrix of the same shape and
// kind of view: y[r] = silu(Σ_c x[c]·gate[r][c]) · Σ_c x[c]·w[r][c]. Non-owning.
struct VectorProduct {
  const float* packed = nullptr;  // x, as packed by pack_for()
  const WeightView* weight = nullptr;
  float* y = nullptr;
  std::span<const float> bias = {};
  const WeightView* gate = nullptr;
  float* gated = nullptr;  // (rows) room for the products of `gate`
};

// Same bits as matmul() of each product with one token, and silu_mul() of those with a gate. Threads split
// the rows of all products together; the thread that has rows of a gate also has those rows of its product.
// Error(kCorrupt) as packed_matmul().
void multiply_vectors(const Context& ctx, std::span<const VectorProduct> products);

}  // namespace sluice::kernels
