// The MLPs of a model: of dense layers, shared experts and routed ones.
#pragma once

#include <cstddef>
#include <span>

#include "engine/workspace.h"
#include "kernels/context.h"
#include "kernels/packed_matmul.h"

namespace sluice::engine {

// down(silu(gate·x) ⊙ up·x); without a gate (empty) down(relu(up·x)). Non-owning.
struct Mlp {
  kernels::WeightView gate, up, down;  // (width, d), (width, d), (d, width)
  const float* packed = nullptr;       // (T, pf(d)) what it is applied to
  float* out = nullptr;                // (T, d)
};

// Scratch: w.gate, w.up and w.packed_inner.
void compute(const kernels::Context& kernels, const Mlp& mlp, std::size_t tokens, const Workspace& w);

// Each for one token, with the same bits; in two passes of the threads instead of three for each. At most the
// shared and top_k routed experts of the model for which `w` was laid out.
void compute_together(const kernels::Context& kernels, std::span<const Mlp> mlps, const Workspace& w);

}  // namespace sluice::engine
