// The MLPs of a model: those of dense layers, shared experts and routed experts.
#pragma once

#include <cstddef>
#include <span>

#include "engine/forward/workspace.h"
#include "kernels/context.h"
#include "kernels/products/weight_view.h"

namespace sluice::engine {

// down(silu(gate·x) ⊙ up·x); without a gate (empty) down(relu(up·x)). All matrices are in slices, or none.
// Non-owning.
struct Mlp {
  kernels::WeightView gate, up, down;  // (width, d), (width, d), (d, width)
  const float* packed = nullptr;       // (T, d) its input, packed by kernels::pack_for()
  float* out = nullptr;                // (T, d)
};

// Scratch: w.gate, w.up and w.packed_inner.
void compute(const kernels::Context& kernels, const Mlp& mlp, std::size_t tokens, const Workspace& w);

// Computes each MLP for one token, with the same bits as compute(), in two passes of the threads instead of
// three per MLP. At most the shared and top_k routed experts of the model for which `w` was laid out.
void compute_together(const kernels::Context& kernels, std::span<const Mlp> mlps, const Workspace& w);

}  // namespace sluice::engine
