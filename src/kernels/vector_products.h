// Several products of one token each, in one pass of the threads: what a layer asks of memory at once. Alone,
// each of them would end with one thread waiting for the other.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/context.h"
#include "kernels/weight_view.h"

namespace sluice::kernels {

// y[r] = Σ_c x[c]·w[r][c] (+ bias[r] when bias is not empty). Non-owning.
struct VectorProduct {
  const float* packed = nullptr;  // x, as pack_for() leaves it
  const WeightView* weight = nullptr;
  float* y = nullptr;
  std::span<const float> bias = {};
};

// As matmul() of each, with one token: the same bits. Threads split the rows of all together. Error(kCorrupt)
// as packed_matmul().
void multiply_vectors(const Context& ctx, std::span<const VectorProduct> products);

}  // namespace sluice::kernels
